package compat;

import com.rabbitmq.stream.BackOffDelayPolicy;
import com.rabbitmq.stream.ConsumerBuilder;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.EnvironmentBuilder;
import com.rabbitmq.stream.OffsetSpecification;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** One run of one scenario: its connections, its stream, and how long it waits. */
final class Run implements AutoCloseable {

  static final Duration LIMIT = Duration.ofSeconds(20);
  private static final Duration EXCESS = Duration.ofMillis(300);

  final String stream;
  private final Map<String, String> options;
  private final Map<String, String> values;
  private final Consumer<String> waiting;
  private final List<Environment> environments = new ArrayList<>();

  Run(Map<String, String> options, String stream, Map<String, String> values,
      Consumer<String> waiting) {
    this.options = options;
    this.stream = stream;
    this.values = values;
    this.waiting = waiting;
  }

  /** An option of the command line. */
  String option(String name) {
    return options.get(name);
  }

  /** A value that followed the stream's name. */
  String value(String name) {
    return values.get(name);
  }

  /** Tells the harness what is to be done and returns when it was. */
  void waitFor(String what) {
    waiting.accept(what);
  }

  /** Connects with the options that were changed. */
  Environment open(UnaryOperator<EnvironmentBuilder> changed) {
    var builder = Environment.builder()
        .host(option("host"))
        .port(Integer.parseInt(option("port")))
        // The default of five seconds between attempts would only make the runs longer.
        .recoveryBackOffDelayPolicy(BackOffDelayPolicy.fixed(Duration.ofSeconds(1)));
    var environment = changed.apply(builder).build();
    environments.add(environment);
    return environment;
  }

  Environment open() {
    return open(builder -> builder);
  }

  /** Connects and creates the run's stream. */
  Environment openWithStream(UnaryOperator<EnvironmentBuilder> changed) {
    var environment = open(changed);
    environment.streamCreator().stream(stream).create();
    return environment;
  }

  Environment openWithStream() {
    return openWithStream(builder -> builder);
  }

  /** A consumer of the run's stream from an offset on, without a name. */
  ConsumerBuilder consumer(Environment environment, OffsetSpecification offset) {
    return environment.consumerBuilder().stream(stream).offset(offset);
  }

  /** Reads so many messages from the beginning of a stream. */
  List<Inbox.Delivery> readStream(Environment environment, int count) {
    var inbox = new Inbox();
    consumer(environment, OffsetSpecification.first()).messageHandler(inbox).build();
    return inbox.read(count);
  }

  @Override
  public void close() {
    environments.forEach(Environment::close);
  }

  /** Gives a subscription the time to begin. */
  static void settle() {
    sleep(Duration.ofMillis(500));
  }

  /** Waits for what should not come. */
  static void waitForExcess() {
    sleep(EXCESS);
  }

  static void until(String what, BooleanSupplier isSo) {
    var end = System.nanoTime() + LIMIT.toNanos();
    while (!isSo.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("waited too long for " + what);
      }
      sleep(Duration.ofMillis(5));
    }
  }

  private static void sleep(Duration time) {
    try {
      Thread.sleep(time.toMillis());
    } catch (InterruptedException fault) {
      throw new IllegalStateException(fault);
    }
  }
}
