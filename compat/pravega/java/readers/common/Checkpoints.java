import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.StreamCut;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Checkpoints by hand and by themselves, and what a reset to one gives. */
final class Checkpoints {
    static void add(Map<String, Run.Scenario> all) {
        all.put("checkpoint", Checkpoints::resetToCheckpoint);
        all.put("checkpoint-of-two", Checkpoints::completeByTwo);
        all.put("checkpoint-without-readers", Checkpoints::completeWithoutReaders);
        all.put("checkpoints-at-most", Checkpoints::initiateTooMany);
        all.put("automatic-checkpoints", Checkpoints::completeByThemselves);
        all.put("reset", Checkpoints::resetToOthers);
    }

    private static void resetToCheckpoint(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("before", Stage.texts(stage.take(reader, 4)));
        CompletableFuture<Checkpoint> pending = group.initiateCheckpoint("mark", stage.timer);
        Stage.awaitRefresh();
        EventRead<String> read = reader.readNextEvent(Stage.READ_MS);
        stage.say("name", read.getCheckpointName());
        stage.say("event", read.getEvent());
        stage.say("done before the next read", pending.isDone());
        stage.say("after", Stage.texts(stage.take(reader, 3)).size());
        Checkpoint checkpoint = pending.get(20, TimeUnit.SECONDS);
        stage.say("checkpoint", checkpoint.getName());
        stage.say("streams", checkpoint.asImpl().getPositions().size());
        StreamCut cut = checkpoint.asImpl().getPositions().get(stage.stream("events"));
        stage.say("cut", Stage.words(cut));
        Checkpoint copy = Checkpoint.fromBytes(checkpoint.toBytes());
        group.resetReaderGroup(stage.quick().startFromCheckpoint(copy).build());
        stage.tell("reader of before", () -> {
            for (int tries = 0; tries < Stage.TRIES; tries++) {
                reader.readNextEvent(500);
            }
            return "reads on";
        });
        stage.say("online", group.getOnlineReaders());
        EventStreamReader<String> again = stage.reader("reader", "group");
        stage.say("again from", Stage.texts(stage.take(again, 1)));
    }

    private static void completeByTwo(Stage stage) throws Exception {
        stage.create("events", 2);
        stage.write("events", 6, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> one = stage.reader("one", "group");
        EventStreamReader<String> two = stage.reader("two", "group");
        for (int tries = 0; tries < 20; tries++) {
            if (group.getReaderSegmentDistribution().getUnassignedSegments() == 0) {
                break;
            }
            one.readNextEvent(300);
            two.readNextEvent(300);
        }
        stage.say("segments", new TreeMap<>(
            group.getReaderSegmentDistribution().getReaderSegmentDistribution()));
        CompletableFuture<Checkpoint> pending = group.initiateCheckpoint("mark", stage.timer);
        Stage.awaitRefresh();
        stage.say("first", stage.checkpoint(one));
        one.readNextEvent(100);
        Stage.awaitRefresh();
        stage.say("done with one", pending.isDone());
        stage.say("second", stage.checkpoint(two));
        two.readNextEvent(100);
        stage.say("checkpoint", pending.get(20, TimeUnit.SECONDS).getName());
    }

    private static void completeWithoutReaders(Stage stage) throws Exception {
        stage.create("events", 2);
        stage.write("events", 6, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        Checkpoint checkpoint = group.initiateCheckpoint("mark", stage.timer).get(20, TimeUnit.SECONDS);
        stage.say("cut", Stage.words(checkpoint.asImpl().getPositions().get(stage.stream("events"))));
        stage.tell("the same name", () ->
            group.initiateCheckpoint("mark", stage.timer).get(20, TimeUnit.SECONDS).getName());
        stage.say("cuts", Stage.words(group.getStreamCuts().get(stage.stream("events"))));
    }

    private static void initiateTooMany(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group",
            stage.quick().maxOutstandingCheckpointRequest(2).stream(stage.stream("events")).build());
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.take(reader, 1);
        // The client's one thread waits for itself when two are awaited, so none of them is.
        group.initiateCheckpoint("first", stage.timer);
        group.initiateCheckpoint("second", stage.timer);
        stage.tell("third", () ->
            group.initiateCheckpoint("third", stage.timer).get(20, TimeUnit.SECONDS));
        Stage.awaitRefresh();
        stage.say("names", List.of(stage.checkpoint(reader), stage.checkpoint(reader)));
    }

    private static void completeByThemselves(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.often("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", stage.take(reader, 10).size());
        List<Boolean> names = new ArrayList<>();
        for (int count = 0; count < 2; count++) {
            String name = stage.checkpoint(reader);
            names.add(name != null && !name.isEmpty());
        }
        stage.say("checkpoints", names);
        reader.readNextEvent(100);
        stage.say("cuts", Stage.words(group.getStreamCuts().get(stage.stream("events"))));
        stage.write("events", 1, 10, 12);
        stage.say("more", Stage.texts(stage.take(reader, 2)));
    }

    private static void resetToOthers(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.write("events", 1, 0, 10);
        stage.write("others", 1, 100, 110);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", stage.take(reader, 10).size());
        stage.tell("a missing stream", () -> {
            group.resetReaderGroup(stage.on("missing"));
            return "done";
        });
        stage.tell("reset", () -> {
            group.resetReaderGroup(stage.on("others"));
            return "done";
        });
        stage.say("streams", group.getStreamNames());
        stage.tell("others", () -> Stage.texts(stage.take(stage.reader("other", "group"), 2)));
    }
}
