package compat;

import com.rabbitmq.stream.ByteCapacity;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.NoOffsetException;
import com.rabbitmq.stream.OffsetSpecification;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Where a consumer begins, and what the server remembers for it. */
final class Offsets {

  private Offsets() {}

  static Map<String, ?> first(Run run) {
    return readFrom(run, OffsetSpecification.first(), 20);
  }

  static Map<String, ?> last(Run run) {
    return readFrom(run, OffsetSpecification.last(), 1);
  }

  static Map<String, ?> absolute(Run run) {
    return readFrom(run, OffsetSpecification.offset(5), 15);
  }

  static Map<String, ?> next(Run run) {
    return readComing(run, OffsetSpecification.next(), 10);
  }

  static Map<String, ?> beyond(Run run) {
    return readComing(run, OffsetSpecification.offset(21), 9);
  }

  static Map<String, ?> future(Run run) {
    var later = System.currentTimeMillis() + 3_600_000;
    return readComing(run, OffsetSpecification.timestamp(later), 10);
  }

  static Map<String, ?> timestamp(Run run) {
    var environment = run.openWithStream();
    var between = new AtomicLong();
    publishThrice(run, environment, () -> {
      Run.settle();
      between.set(System.currentTimeMillis());
      Run.settle();
    });
    return readRest(run, environment, OffsetSpecification.timestamp(between.get()), 10);
  }

  /** Publishes, then reads from an offset on what is there. */
  private static Map<String, ?> readFrom(Run run, OffsetSpecification offset, int count) {
    var environment = run.openWithStream();
    publishThrice(run, environment, () -> {});
    return readRest(run, environment, offset, count);
  }

  private static Map<String, ?> readRest(
      Run run, Environment environment, OffsetSpecification offset, int count) {
    var inbox = new Inbox();
    run.consumer(environment, offset).messageHandler(inbox).build();
    return Map.of("read", inbox.readNumbers(count));
  }

  /** Subscribes behind all that is there, and reads what is published then. */
  private static Map<String, ?> readComing(Run run, OffsetSpecification offset, int count) {
    var environment = run.openWithStream();
    var publisher = publishThrice(run, environment, () -> {});
    var inbox = new Inbox();
    run.consumer(environment, offset).messageHandler(inbox).build();
    Run.settle();
    publisher.sendAll(20, 30);
    return Map.of("read", inbox.readNumbers(count));
  }

  /** Sends messages 0-9, 10-18 and 19, with something done behind the first. */
  private static Publisher publishThrice(Run run, Environment environment, Runnable afterFirst) {
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    publisher.sendAll(0, 10);
    afterFirst.run();
    publisher.sendAll(10, 19);
    publisher.sendAll(19, 20);
    return publisher;
  }

  static Map<String, ?> tracking(Run run) {
    var environment = run.openWithStream();
    new Publisher(environment.producerBuilder().stream(run.stream)).sendAll(0, 10);
    var found = new LinkedHashMap<String, Object>();
    // The library asks and stores through a consumer of that name only.
    try (var app = named(run, environment, "app"); var other = named(run, environment, "other")) {
      found.put("before", stored(app));
      var stored = new ArrayList<>();
      for (long offset : List.of(4L, 7L)) {
        store(app, offset);
        stored.add(stored(app));
      }
      found.put("stored", stored);
      found.put("other", stored(other));
    }
    var inbox = new Inbox();
    run.consumer(environment, OffsetSpecification.first())
        .name("app").autoTrackingStrategy().builder().messageHandler(inbox).build();
    found.put("read", inbox.readNumbers(2));
    return found;
  }

  /**
   * A named consumer, all by the library's defaults, reads 0-5 and closes. 18 messages come, and
   * retention removes the first. It comes back and reads all that is kept.
   */
  static Map<String, ?> kept(Run run) {
    var environment = run.open();
    environment.streamCreator().stream(run.stream)
        .maxLengthBytes(ByteCapacity.B(1_200)).maxSegmentSizeBytes(ByteCapacity.B(300)).create();
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    var before = readByDefaults(run, environment, () -> sendEach(publisher, 0, 6), 5);
    sendEach(publisher, 6, 24);
    Run.until("retention", () -> firstOffset(run, environment) > 7);
    var first = new AtomicLong();
    var after = readByDefaults(run, environment,
        () -> first.set(firstOffset(run, environment)), 23);
    var read = Messages.numbers(after);
    return Map.of("before", Messages.numbers(before),
        // Retention may go on after the consumer was given its first message.
        "all kept", after.get(0).offset() <= first.get(),
        "none missing", read.size() == 24 - read.get(0), "last", read.get(read.size() - 1));
  }

  /** The same consumer has read all, and the stream is truncated at its end: it gets the next. */
  static Map<String, ?> truncated(Run run) {
    var environment = run.openWithStream();
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    var before = readByDefaults(run, environment, () -> sendEach(publisher, 0, 6), 5);
    run.waitFor("truncate");
    publisher.sendAll(6, 10);
    var after = readByDefaults(run, environment, () -> {}, 9);
    return Map.of("before", Messages.numbers(before), "after", Messages.numbers(after));
  }

  /** Opens a consumer by its name alone, does something, and reads up to a message; closes it. */
  private static List<Inbox.Delivery> readByDefaults(
      Run run, Environment environment, Runnable begun, int last) {
    var inbox = new Inbox();
    try (var consumer = environment.consumerBuilder()
        .stream(run.stream).name("app").messageHandler(inbox).build()) {
      Run.settle();
      begun.run();
      Run.until("message " + last, () -> Messages.numbers(inbox.all()).contains(last));
      Run.waitForExcess();
    }
    return inbox.all();
  }

  /** Sends messages one by one, so that each is a chunk of its own. */
  private static void sendEach(Publisher publisher, int first, int next) {
    for (int i = first; i < next; i++) {
      publisher.sendAll(i, i + 1);
    }
  }

  private static long firstOffset(Run run, Environment environment) {
    return environment.queryStreamStats(run.stream).firstOffset();
  }

  /** A consumer that stores only what it is told to; what it reads does not matter. */
  private static Consumer named(Run run, Environment environment, String name) {
    return run.consumer(environment, OffsetSpecification.first())
        .name(name).manualTrackingStrategy().builder()
        .messageHandler((context, message) -> {}).build();
  }

  /** The offset that the server keeps for a consumer, or "none". */
  static Object stored(Consumer consumer) {
    try {
      return consumer.storedOffset();
    } catch (NoOffsetException none) {
      return "none";
    }
  }

  /** Stores an offset and returns when the server tells it back: storing has no answer. */
  static void store(Consumer consumer, long offset) {
    consumer.store(offset);
    Run.until("offset " + offset + " to be stored", () -> stored(consumer).equals(offset));
  }
}
