import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.TimeWindow;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Streams that change under a group: scaled, truncated, deleted and made again. */
final class Changes {
    static void add(Map<String, Run.Scenario> all) {
        all.put("scale", Changes::readOverScale);
        all.put("scale-without-checkpoints", Changes::readOverScaleOnce);
        all.put("scale-refused", Changes::scaleWrongly);
        all.put("truncated", Changes::readTruncated);
        all.put("truncated-while-read", Changes::readWhileTruncated);
        all.put("truncated-wrongly", Changes::truncateWrongly);
        all.put("stream-again", Changes::createAgain);
        all.put("time-windows", Changes::readTimeWindows);
    }

    private static void readOverScale(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.groups().createReaderGroup("group", stage.often("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.write("events", 8, 0, 10);
        stage.say("split", stage.scale("events", List.of(0L), 0.0, 0.5, 1.0));
        stage.write("events", 8, 10, 20);
        stage.say("segments", stage.controller()
            .getCurrentSegments(stage.scope, "events").get().getSegments().size());
        stage.say("merged", stage.scale(
            "events", List.of(Stage.id(1, 1), Stage.id(2, 1)), 0.0, 1.0));
        stage.write("events", 8, 20, 30);
        EventStreamReader<String> reader = stage.reader("reader", "group");
        List<EventRead<String>> reads = stage.take(reader, 240);
        List<String> events = Stage.texts(reads);
        stage.say("events", events.size());
        stage.say("distinct", new HashSet<>(events).size());
        stage.say("in order", Stage.isInOrder(events, 0));
        Map<String, Integer> counts = new TreeMap<>();
        for (EventRead<String> read : reads) {
            counts.merge(stage.place(read).replaceAll(":.*", ""), 1, Integer::sum);
        }
        stage.say("by segment", counts);
        stage.say("cut", stage.settled(reader, group, "events"));
    }

    /** Read beyond the end of a segment, which a group without checkpoints never lets go. */
    private static void readOverScaleOnce(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.say("scaled", stage.scale("events", List.of(0L), 0.0, 0.5, 1.0));
        stage.write("events", 1, 10, 20);
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", stage.take(reader, 10).size());
        stage.say("none", reader.readNextEvent(1_000).getEvent());
        StreamCut cut = stage.turn(reader, group.generateStreamCuts(stage.timer))
            .get(stage.stream("events"));
        stage.say("none after the cut", reader.readNextEvent(1_000).getEvent());
        stage.say("cut", Stage.words(cut));
        stage.groups().createReaderGroup("ended", stage.quick()
            .stream(stage.stream("events"), stage.cut("events", 0, -1)).build());
        ReaderGroup ended = stage.keep(stage.groups().getReaderGroup("ended"));
        stage.tell("unread behind the end", () -> ended.getMetrics().unreadBytes());
        stage.tell("read behind the end", () ->
            stage.reader("other", "ended").readNextEvent(2_000).getEvent());
        stage.tell("truncate to the end", () ->
            stage.truncate("events", stage.cut("events", 0, -1)));
    }

    private static void scaleWrongly(Stage stage) {
        stage.create("events", 2);
        stage.tell("not its range", () ->
            stage.scale("events", List.of(0L), 0.0, 0.7));
        stage.tell("a missing segment", () ->
            stage.scale("events", List.of(7L), 0.0, 0.5));
        stage.tell("the same range", () ->
            stage.scale("events", List.of(0L), 0.0, 0.5));
        stage.tell("sealed before", () ->
            stage.scale("events", List.of(0L), 0.0, 0.25, 0.5));
        stage.tell("a missing stream", () ->
            stage.scale("missing", List.of(0L), 0.0, 1.0));
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("a sealed stream", () ->
            stage.scale("events", List.of(1L), 0.5, 1.0));
    }

    private static void readTruncated(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        stage.tell("truncate", () -> stage.truncate("events", stage.cut("events", 0, 48)));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.tell("first read", () -> reader.readNextEvent(Stage.READ_MS).getEvent());
        stage.say("then", Stage.texts(stage.take(reader, 6)));
        stage.groups().createReaderGroup("later", stage.on("events"));
        EventStreamReader<String> later = stage.reader("reader", "later");
        stage.tell("a later group", () -> later.readNextEvent(Stage.READ_MS).getEvent());
        stage.groups().createReaderGroup("behind", stage.quick()
            .stream(stage.stream("events"), stage.cut("events", 0, 24)).build());
        EventStreamReader<String> behind = stage.reader("reader", "behind");
        stage.tell("a group from behind", () -> behind.readNextEvent(Stage.READ_MS).getEvent());
        stage.tell("and then", () -> behind.readNextEvent(Stage.READ_MS).getEvent());
    }

    private static void readWhileTruncated(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.groups().createReaderGroup("group", stage.often("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.write("events", 1, 0, 10);
        stage.take(reader, 10);
        stage.say("scaled", stage.scale("events", List.of(0L), 0.0, 0.5, 1.0));
        stage.write("events", 8, 10, 20);
        stage.say("truncate", stage.truncate(
            "events", stage.cut("events", Stage.id(1, 1), 26, Stage.id(2, 1), 39)));
        List<Object> faults = new ArrayList<>();
        List<String> events = new ArrayList<>();
        for (int tries = 0; tries < 400 && events.size() < 75; tries++) {
            try {
                String event = reader.readNextEvent(200).getEvent();
                if (event != null) {
                    events.add(event);
                }
            } catch (io.pravega.client.stream.TruncatedDataException error) {
                faults.add(Stage.classes(error));
            }
        }
        stage.say("faults", faults);
        stage.say("events", events.size());
        stage.say("cut", stage.settled(reader, group, "events"));
    }

    private static void truncateWrongly(Stage stage) {
        stage.create("events", 2);
        stage.write("events", 6, 0, 10);
        stage.tell("half of the keys", () -> stage.truncate("events", stage.cut("events", 0, 24)));
        stage.tell("a missing segment", () ->
            stage.truncate("events", stage.cut("events", 0, 24, 7, 24)));
        stage.tell("forward", () -> stage.truncate("events", stage.cut("events", 0, 48, 1, 48)));
        stage.tell("back", () -> stage.truncate("events", stage.cut("events", 0, 24, 1, 24)));
        stage.tell("the same", () -> stage.truncate("events", stage.cut("events", 0, 48, 1, 48)));
        stage.tell("a missing stream", () ->
            stage.truncate("missing", stage.cut("missing", 0, 24)));
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("a sealed stream", () ->
            stage.truncate("events", stage.cut("events", 0, 60, 1, 60)));
        stage.create("short", 1);
        stage.write("short", 1, 0, 10);
        stage.tell("beyond the end", () -> stage.truncate("short", stage.cut("short", 0, 1_200)));
        stage.tell("after that", () -> stage.truncate("short", stage.cut("short", 0, 24)));
        stage.groups().createReaderGroup("group", stage.on("short"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.tell("first read", () -> reader.readNextEvent(Stage.READ_MS).getEvent());
    }

    private static void createAgain(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 3)));
        stage.tell("delete unsealed", () -> stage.streams().deleteStream(stage.scope, "events"));
        stage.tell("seal", () -> stage.streams().sealStream(stage.scope, "events"));
        stage.tell("delete", () -> stage.streams().deleteStream(stage.scope, "events"));
        stage.tell("streams", () -> Groups.listed(stage, stage.scope));
        stage.tell("segments", () ->
            stage.controller().getCurrentSegments(stage.scope, "events").get().getSegments().size());
        stage.create("events", 1);
        stage.tell("numbers", () -> {
            List<String> words = new ArrayList<>();
            stage.controller().getCurrentSegments(stage.scope, "events").get().getSegments()
                .forEach(segment -> words.add(Stage.words(segment)));
            return words;
        });
        stage.write("events", 1, 50, 55);
        stage.tell("a new group", () -> {
            stage.groups().createReaderGroup("new", stage.on("events"));
            return Stage.texts(stage.take(stage.reader("new", "new"), 5));
        });
        reader.close();
        stage.tell("unread", 10, () -> group.getMetrics().unreadBytes());
        stage.tell("the old group", 10, () ->
            stage.reader("other", "group").readNextEvent(3_000).getEvent());
        stage.tell("reset", () -> {
            group.resetReaderGroup(stage.on("events"));
            return Stage.texts(stage.take(stage.reader("third", "group"), 5));
        });
    }

    private static void readTimeWindows(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("none", words(reader, stage.stream("events")));
        stage.tell("of another stream", () -> words(reader, stage.stream("others")));
        try (EventStreamWriter<String> writer = stage.writer("events")) {
            boolean moved = false;
            for (int time = 1; time <= 30 && !moved; time++) {
                writer.writeEvent("key", "k0:" + time).join();
                writer.noteTime(time * 1_000L);
                for (int reads = 0; reads < 4; reads++) {
                    reader.readNextEvent(250);
                }
                moved = !words(reader, stage.stream("events")).equals("null..null");
            }
            stage.say("moves", moved);
        }
    }

    private static String words(EventStreamReader<String> reader, Stream stream) {
        TimeWindow window = reader.getCurrentTimeWindow(stream);
        return window.getLowerTimeBound() + ".." + window.getUpperTimeBound();
    }
}
