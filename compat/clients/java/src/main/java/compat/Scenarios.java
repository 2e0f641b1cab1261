package compat;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.rabbitmq.stream.Environment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The scenarios of SCENARIOS.md on com.rabbitmq:stream-client. */
public final class Scenarios {

  /** One section of the page: what it prints behind "ok". */
  interface Scenario {
    Map<String, ?> run(Run run) throws Exception;
  }

  private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  private final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
  private final Map<String, String> options = new HashMap<>();

  /** All that this library offers, in the order of the page. */
  private static Map<String, Scenario> all() {
    var all = new LinkedHashMap<String, Scenario>();
    all.put("publish", Publishing::publish);
    all.put("batch", Publishing::batch);
    all.put("large", Publishing::large);
    for (var codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      all.put("sub-" + codec, run -> Publishing.subEntries(run, codec));
    }
    all.put("offset-first", Offsets::first);
    all.put("offset-last", Offsets::last);
    all.put("offset-next", Offsets::next);
    all.put("offset-absolute", Offsets::absolute);
    all.put("offset-beyond", Offsets::beyond);
    all.put("offset-timestamp", Offsets::timestamp);
    all.put("offset-future", Offsets::future);
    all.put("tracking", Offsets::tracking);
    all.put("dedup", Publishing::dedup);
    all.put("filter", Publishing::filter);
    all.put("super-hash", Groups::superHash);
    all.put("super-key", Groups::superKey);
    all.put("super-read", Groups::superRead);
    all.put("sac", Groups::sac);
    all.put("super-sac", Groups::superSac);
    all.put("reconnect", Connecting::reconnect);
    all.put("tls", Connecting::tls);
    all.put("tls-distrust", Connecting::tlsDistrust);
    all.put("tls-external", Connecting::tlsExternal);
    all.put("errors", Connecting::errors);
    all.put("kept", Offsets::kept);
    all.put("truncated", Offsets::truncated);
    all.put("write", Publishing::write);
    all.put("read", Publishing::read);
    return all;
  }

  public static void main(String[] arguments) throws IOException {
    new Scenarios().perform(arguments);
    // The library's threads may outlive what they served; nothing is left to wait for.
    System.exit(0);
  }

  private void perform(String[] arguments) throws IOException {
    int next = 0;
    while (next < arguments.length && arguments[next].startsWith("--")) {
      options.put(arguments[next].substring(2), arguments[next + 1]);
      next += 2;
    }
    if (next < arguments.length) {
      perform(Arrays.asList(arguments).subList(next, arguments.length));
      return;
    }
    var version = Environment.class.getPackage().getImplementationVersion();
    say(Map.of("ready",
        Map.of("client", "java", "version", version, "scenarios", all().keySet())));
    for (var line = lines.readLine(); line != null; line = lines.readLine()) {
      perform(List.of(line.split(" ")));
    }
  }

  /** Runs one scenario, given as its words, and prints how it ended. */
  private void perform(List<String> words) {
    var scenario = all().get(words.get(0));
    if (scenario == null || words.size() < 2) {
      say(Map.of("error", "no such scenario: " + words));
      return;
    }
    var values = new HashMap<String, String>();
    for (var word : words.subList(2, words.size())) {
      var parts = word.split("=", 2);
      values.put(parts[0], parts[1]);
    }
    try (var run = new Run(options, words.get(1), values, this::waitFor)) {
      say(Map.of("ok", scenario.run(run)));
    } catch (Exception | AssertionError fault) {
      fault.printStackTrace();
      say(Map.of("error", fault.toString()));
    }
  }

  /** Tells the harness what is to be done and returns when it was. */
  private void waitFor(String what) {
    say(Map.of("wait", what));
    try {
      var line = lines.readLine();
      if (!"go".equals(line)) {
        throw new IllegalStateException("expected the line go, got " + line);
      }
    } catch (IOException fault) {
      throw new IllegalStateException(fault);
    }
  }

  private static void say(Object document) {
    System.out.println(JSON.toJson(document));
    System.out.flush();
  }
}
