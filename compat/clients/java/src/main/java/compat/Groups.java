package compat;

import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.StreamCreator;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** Super streams, and consumers of which one is active. */
final class Groups {

  private static final List<String> REGIONS = List.of("amer", "emea", "apac");

  private Groups() {}

  private static Environment openSuperStream(
      Run run, UnaryOperator<StreamCreator.SuperStreamConfiguration> partitions) {
    var environment = run.open();
    partitions.apply(environment.streamCreator().name(run.stream).superStream())
        .creator().create();
    return environment;
  }

  private static Environment openOfThree(Run run) {
    return openSuperStream(run, partitions -> partitions.partitions(3));
  }

  private static int number(Message message) {
    return Messages.number(message.getBodyAsBinary());
  }

  /** A producer that routes message i by the hash of key-i. */
  private static Publisher byHash(Run run, Environment environment) {
    return new Publisher(environment.producerBuilder().superStream(run.stream)
        .routing(message -> "key-" + number(message)).hash().producerBuilder());
  }

  static Map<String, ?> superHash(Run run) {
    var environment = openOfThree(run);
    return routed(run, environment, byHash(run, environment), List.of("0", "1", "2"));
  }

  static Map<String, ?> superKey(Run run) {
    var environment = openSuperStream(
        run, partitions -> partitions.bindingKeys(REGIONS.toArray(String[]::new)));
    var publisher = new Publisher(environment.producerBuilder().superStream(run.stream)
        .routing(message -> REGIONS.get(number(message) % 3)).key().producerBuilder());
    return routed(run, environment, publisher, REGIONS);
  }

  private static Map<String, ?> routed(
      Run run, Environment environment, Publisher publisher, List<String> names) {
    publisher.sendAll(0, 30);
    var inboxes = new LinkedHashMap<String, Inbox>();
    for (var name : names) {
      inboxes.put(name, new Inbox());
      environment.consumerBuilder().stream(run.stream + "-" + name)
          .offset(OffsetSpecification.first()).messageHandler(inboxes.get(name)).build();
    }
    Run.until("30 messages",
        () -> inboxes.values().stream().mapToInt(each -> each.all().size()).sum() >= 30);
    Run.waitForExcess();
    var read = new LinkedHashMap<String, List<Integer>>();
    inboxes.forEach((name, inbox) -> read.put(name, Messages.numbers(inbox.all())));
    return Map.of("confirmed", publisher.confirmed(), "read", read);
  }

  static Map<String, ?> superRead(Run run) {
    var environment = openOfThree(run);
    var publisher = byHash(run, environment);
    publisher.sendAll(0, 30);
    var inbox = new Inbox();
    environment.consumerBuilder().superStream(run.stream)
        .offset(OffsetSpecification.first()).messageHandler(inbox).build();
    return Map.of(
        "confirmed", publisher.confirmed(),
        "read", inbox.readNumbers(30).stream().sorted().toList());
  }

  /** A single active consumer of "group"; the library begins behind the stored offset. */
  private static Consumer singleActive(Run run, Inbox inbox, boolean isSuper) {
    var builder = run.open().consumerBuilder();
    return (isSuper ? builder.superStream(run.stream) : builder.stream(run.stream))
        .name("group").singleActiveConsumer().manualTrackingStrategy().builder()
        .offset(OffsetSpecification.first()).messageHandler(inbox).build();
  }

  static Map<String, ?> sac(Run run) {
    var environment = run.openWithStream();
    var a = new Inbox();
    var b = new Inbox();
    var consumerOfA = singleActive(run, a, false);
    Run.settle();
    singleActive(run, b, false);
    Run.settle();
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    publisher.sendAll(0, 10);
    a.await(10);
    // Not simply 9: what servers keep in a stream beside messages may take offsets too.
    Offsets.store(consumerOfA, a.all().get(9).offset());
    consumerOfA.close();
    publisher.sendAll(10, 20);
    var readByB = b.readNumbers(10);
    return Map.of("a", Messages.numbers(a.all()), "b", readByB);
  }

  static Map<String, ?> superSac(Run run) {
    var environment = openOfThree(run);
    var a = new Inbox();
    var b = new Inbox();
    var consumerOfA = singleActive(run, a, true);
    Run.settle();
    singleActive(run, b, true);
    Run.settle();
    var publisher = byHash(run, environment);
    publisher.sendAll(0, 30);
    Run.until("30 messages", () -> a.all().size() + b.all().size() >= 30);
    Run.waitForExcess();
    var together = Stream.concat(a.all().stream(), b.all().stream()).toList();
    var hadBefore = b.all().size();
    storeLast(together);
    consumerOfA.close();
    publisher.sendAll(30, 60);
    var afterwards = new ArrayList<>(b.read(hadBefore + 30)).subList(hadBefore, b.all().size());
    return Map.of(
        "together", Messages.numbers(together).stream().sorted().toList(),
        "b", Messages.numbers(afterwards).stream().sorted().toList());
  }

  /** Stores for "group" the last offset that was read of each partition, by who read it. */
  private static void storeLast(List<Inbox.Delivery> arrived) {
    var last = new LinkedHashMap<String, Inbox.Delivery>();
    for (var each : arrived) {
      last.merge(each.stream(), each, (one, two) -> one.offset() > two.offset() ? one : two);
    }
    last.values().forEach(each -> Offsets.store(each.context().consumer(), each.offset()));
  }
}
