package compat;

import com.rabbitmq.stream.ByteCapacity;
import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.EnvironmentBuilder;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.StreamException;
import com.rabbitmq.stream.sasl.DefaultSaslConfiguration;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.UnaryOperator;
import javax.net.ssl.SSLException;

/** Getting in by TLS, being refused, and coming back after the server was away. */
final class Connecting {

  private Connecting() {}

  /** Makes a connection use TLS and trust the authority of a PEM file. */
  private static UnaryOperator<EnvironmentBuilder> overTls(
      Run run, String authority, boolean showsCertificate) throws SSLException {
    var context = SslContextBuilder.forClient().trustManager(new File(run.option(authority)));
    if (showsCertificate) {
      context.keyManager(new File(run.option("cert")), new File(run.option("key")));
    }
    var built = context.build();
    return builder -> builder
        .port(Integer.parseInt(run.option("tls-port")))
        .tls().sslContext(built).environmentBuilder();
  }

  static Map<String, ?> tls(Run run) throws SSLException {
    return Publishing.publishAndRead(run, 20, overTls(run, "ca", false));
  }

  static Map<String, ?> tlsDistrust(Run run) throws SSLException {
    var distrusting = overTls(run, "other-ca", false);
    try {
      run.open(distrusting);
      return Map.of("connected", true);
    } catch (StreamException refused) {
      return Map.of("connected", false);
    }
  }

  static Map<String, ?> tlsExternal(Run run) throws SSLException {
    var secured = overTls(run, "ca", true);
    return Publishing.publishAndRead(run, 5, builder ->
        secured.apply(builder).saslConfiguration(DefaultSaslConfiguration.EXTERNAL));
  }

  static Map<String, ?> reconnect(Run run) {
    var environment = run.openWithStream();
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    var inbox = new Inbox();
    run.consumer(environment, OffsetSpecification.first()).messageHandler(inbox).build();
    publisher.sendAll(0, 10);
    var before = inbox.readNumbers(10);
    run.waitFor("restart");
    for (int i = 10; i < 20; i++) {
      var number = i;
      Run.until("confirm of " + i, () -> publisher.sendOne(number));
    }
    // What came twice counts once.
    Run.until("10 messages", () ->
        Messages.numbers(inbox.all()).stream().distinct().count() >= before.size() + 10);
    var after = Messages.numbers(inbox.all()).stream().distinct().skip(before.size()).toList();
    return Map.of("before", before, "after", after, "recovery", "library");
  }

  /** The scenario "errors". Creating a stream again is no error to this library. */
  static Map<String, ?> errors(Run run) {
    var environment = run.open();
    var missing = run.stream + "-x";
    var found = new LinkedHashMap<String, Object>();
    found.put("create", code(() -> environment.streamCreator().stream(run.stream).create()));
    found.put("again", code(() -> environment.streamCreator().stream(run.stream).create()));
    found.put("otherwise", code(() -> environment.streamCreator().stream(run.stream)
        .maxLengthBytes(ByteCapacity.B(1_000_000)).create()));
    found.put("publish_missing",
        code(() -> environment.producerBuilder().stream(missing).build()));
    found.put("read_missing", code(() -> environment.consumerBuilder().stream(missing)
        .messageHandler(new Inbox()).build()));
    found.put("delete_missing", code(() -> environment.deleteStream(missing)));
    found.put("delete", code(() -> environment.deleteStream(run.stream)));
    found.put("password", code(() -> run.open(builder -> builder.password("wrong"))));
    found.put("vhost", code(() -> run.open(builder -> builder.virtualHost("nowhere"))));
    return found;
  }

  /** The number behind a fault; its name where it has none. */
  private static Object code(Runnable attempt) {
    try {
      attempt.run();
      return Constants.RESPONSE_CODE_OK;
    } catch (StreamException fault) {
      return fault.getCode() > 0 ? fault.getCode() : fault.getClass().getSimpleName();
    }
  }
}
