import io.pravega.client.stream.EventPointer;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.ReaderGroup;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Events that were written before, and that come: one reader, two, and an event by its pointer. */
final class Reading {
    static void add(Map<String, Run.Scenario> all) {
        all.put("one-reader", Reading::readWithOne);
        all.put("two-readers", Reading::readWithTwo);
        all.put("event-pointer", Reading::fetchEvents);
        all.put("wait-for-events", Reading::waitForEvents);
        all.put("two-streams", Reading::readTwoStreams);
        all.put("large-events", Reading::readLargeEvents);
        all.put("sealed-stream", Reading::readToTheEnd);
    }

    private static void readWithOne(Stage stage) {
        stage.create("events", 3);
        stage.write("events", 10, 0, 100);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        List<String> events = Stage.texts(stage.take(reader, 1_000));
        stage.say("events", events.size());
        stage.say("distinct", new HashSet<>(events).size());
        stage.say("in order", Stage.isInOrder(events, 0));
        EventRead<String> after = reader.readNextEvent(500);
        stage.say("after", after.getEvent());
        stage.say("after is a checkpoint", after.isCheckpoint());
        stage.say("after has a pointer", after.getEventPointer() != null);
        stage.say("config", reader.getConfig().getInitialAllocationDelay());
        reader.close();
        stage.tell("closed", () -> reader.readNextEvent(500));
    }

    private static void readWithTwo(Stage stage) {
        stage.create("events", 4);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> one = stage.reader("one", "group");
        EventStreamReader<String> two = stage.reader("two", "group");
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        for (int tries = 0; tries < 20 && unassigned(group) > 0; tries++) {
            one.readNextEvent(300);
            two.readNextEvent(300);
        }
        stage.say("segments", new TreeMap<>(
            group.getReaderSegmentDistribution().getReaderSegmentDistribution()));
        stage.say("unassigned", unassigned(group));
        stage.write("events", 20, 0, 20);
        List<String> first = new ArrayList<>();
        List<String> second = new ArrayList<>();
        for (int tries = 0; tries < 1_000 && first.size() + second.size() < 400; tries++) {
            first.addAll(Stage.texts(one(one)));
            second.addAll(Stage.texts(one(two)));
        }
        List<String> all = new ArrayList<>(first);
        all.addAll(second);
        stage.say("events", all.size());
        stage.say("distinct", new HashSet<>(all).size());
        stage.say("in order", Stage.isInOrder(first, 0) && Stage.isInOrder(second, 0));
        stage.say("both read", !first.isEmpty() && !second.isEmpty());
    }

    private static int unassigned(ReaderGroup group) {
        return group.getReaderSegmentDistribution().getUnassignedSegments();
    }

    private static List<EventRead<String>> one(EventStreamReader<String> reader) {
        EventRead<String> read = reader.readNextEvent(50);
        return read.getEvent() == null ? List.of() : List.of(read);
    }

    private static void fetchEvents(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        List<EventRead<String>> reads = stage.take(reader, 10);
        EventPointer fourth = reads.get(3).getEventPointer();
        ByteBuffer bytes = fourth.toBytes();
        stage.say("place", stage.place(reads.get(3)));
        stage.say("event", reader.fetchEvent(fourth));
        stage.say("again", reader.fetchEvent(EventPointer.fromBytes(bytes)));
        stage.truncate("events", stage.cut("events", 0, 60));
        stage.tell("truncated", () -> reader.fetchEvent(fourth));
        stage.tell("left", () -> reader.fetchEvent(reads.get(5).getEventPointer()));
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("sealed", () -> reader.fetchEvent(reads.get(5).getEventPointer()));
        stage.streams().deleteStream(stage.scope, "events");
        stage.tell("deleted", () -> reader.fetchEvent(reads.get(5).getEventPointer()));
    }

    private static void waitForEvents(Stage stage) {
        stage.create("events", 2);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("none", reader.readNextEvent(500).getEvent());
        stage.say("at once", reader.readNextEvent(0).getEvent());
        stage.write("events", 4, 0, 5);
        List<String> events = Stage.texts(stage.take(reader, 20));
        stage.say("events", events.size());
        stage.say("in order", Stage.isInOrder(events, 0));
        stage.write("events", 4, 5, 10);
        events.addAll(Stage.texts(stage.take(reader, 20)));
        stage.say("more", events.size());
        stage.say("still in order", Stage.isInOrder(events, 0));
    }

    private static void readTwoStreams(Stage stage) {
        stage.create("left", 1);
        stage.create("right", 2);
        stage.write("left", 2, 0, 10);
        stage.write("right", 2, 10, 20);
        stage.groups().createReaderGroup("group",
            stage.quick().stream(stage.stream("left")).stream(stage.stream("right")).build());
        EventStreamReader<String> reader = stage.reader("reader", "group");
        Map<String, Integer> counts = new TreeMap<>();
        for (EventRead<String> read : stage.take(reader, 40)) {
            counts.merge(stage.place(read).replaceAll("/.*", ""), 1, Integer::sum);
        }
        stage.say("events", counts);
    }

    private static void readLargeEvents(Stage stage) {
        stage.create("events", 1);
        List<String> written = List.of("a".repeat(1_000_000), "", "b".repeat(8_000_000), "c");
        try (EventStreamWriter<String> writer = stage.writer("events")) {
            written.forEach(event -> writer.writeEvent("key", event).join());
        }
        stage.groups().createReaderGroup("group", stage.on("events"));
        List<EventRead<String>> reads = stage.take(stage.reader("reader", "group"), 4);
        stage.say("same", Stage.texts(reads).equals(written));
        stage.say("last", stage.place(reads.get(3)));
    }

    private static void readToTheEnd(Stage stage) {
        stage.create("events", 2);
        stage.write("events", 4, 0, 10);
        stage.tell("seal", () -> stage.streams().sealStream(stage.scope, "events"));
        stage.groups().createReaderGroup("group", stage.often("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", stage.take(reader, 40).size());
        stage.say("after", reader.readNextEvent(3_000).getEvent());
        stage.say("and again", reader.readNextEvent(3_000).getEvent());
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.say("unassigned", unassigned(group));
        stage.tell("write", () -> {
            stage.write("events", 1, 0, 1);
            return "written";
        });
    }
}
