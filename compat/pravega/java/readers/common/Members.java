import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.Position;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Readers of a group that come and go, and what a group says of itself. */
final class Members {
    static void add(Map<String, Run.Scenario> all) {
        all.put("offline", Members::takeOver);
        all.put("offline-without-position", Members::takeOverFromStart);
        all.put("closed", Members::goOnAfterClose);
        all.put("names", Members::nameMembers);
        all.put("unread-bytes", Members::countUnread);
    }

    private static void takeOver(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> lost = stage.reader("lost", "group");
        List<EventRead<String>> reads = stage.take(lost, 4);
        Position position = Position.fromBytes(reads.get(3).getPosition().toBytes());
        stage.say("position", position);
        group.readerOffline("lost", position);
        stage.say("online", group.getOnlineReaders());
        stage.say("from there", Stage.texts(stage.take(stage.reader("other", "group"), 6)));
        stage.tell("the lost one", () -> {
            for (int tries = 0; tries < Stage.TRIES; tries++) {
                lost.readNextEvent(500);
            }
            return "reads on";
        });
        stage.tell("offline twice", () -> {
            group.readerOffline("lost", position);
            return "done";
        });
        stage.tell("offline, and never there", () -> {
            group.readerOffline("never", null);
            return "done";
        });
    }

    private static void takeOverFromStart(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> lost = stage.reader("lost", "group");
        stage.say("before", Stage.texts(stage.take(lost, 4)));
        CompletableFuture<Checkpoint> pending = group.initiateCheckpoint("mark", stage.timer);
        Stage.awaitRefresh();
        stage.say("checkpoint", stage.checkpoint(lost));
        stage.say("after", Stage.texts(stage.take(lost, 3)));
        stage.say("done", pending.get(20, TimeUnit.SECONDS).getName());
        group.readerOffline("lost", null);
        stage.say("from", Stage.texts(stage.take(stage.reader("other", "group"), 1)));
    }

    private static void goOnAfterClose(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> first = stage.reader("first", "group");
        stage.say("first", Stage.texts(stage.take(first, 3)));
        first.close();
        stage.say("online", group.getOnlineReaders());
        EventStreamReader<String> second = stage.reader("second", "group");
        List<EventRead<String>> reads = stage.take(second, 4);
        stage.say("second", Stage.texts(reads));
        second.closeAt(reads.get(1).getPosition());
        stage.say("third", Stage.texts(stage.take(stage.reader("third", "group"), 2)));
        stage.say("closed twice", closedTwice(first));
    }

    private static String closedTwice(EventStreamReader<String> reader) {
        reader.close();
        return "done";
    }

    private static void nameMembers(Stage stage) {
        stage.create("left", 1);
        stage.create("right", 1);
        ReaderGroupConfig config =
            stage.quick().stream(stage.stream("left")).stream(stage.stream("right")).build();
        stage.groups().createReaderGroup("group", config);
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.say("group", group.getGroupName());
        stage.say("scope", group.getScope().equals(stage.scope));
        stage.say("streams", new TreeSet<>(group.getStreamNames()));
        stage.say("none online", group.getOnlineReaders());
        stage.say("none has segments",
            group.getReaderSegmentDistribution().getReaderSegmentDistribution());
        stage.say("unassigned", group.getReaderSegmentDistribution().getUnassignedSegments());
        stage.reader("one", "group");
        EventStreamReader<String> two = stage.reader("two", "group");
        stage.say("online", new TreeSet<>(group.getOnlineReaders()));
        stage.tell("the same name", () -> stage.reader("one", "group").readNextEvent(100).getEvent());
        two.close();
        stage.say("left", new TreeSet<>(group.getOnlineReaders()));
        stage.tell("again", () -> stage.reader("two", "group").readNextEvent(100).getEvent());
        stage.tell("of a missing group", () -> stage.reader("one", "missing").getConfig());
        stage.tell("a bad name", () -> stage.reader("a/b", "group").readNextEvent(100).getEvent());
    }

    private static void countUnread(Stage stage) throws Exception {
        stage.create("events", 2);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.say("empty", group.getMetrics().unreadBytes());
        stage.write("events", 6, 0, 10);
        stage.say("written", group.getMetrics().unreadBytes());
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.take(reader, 60);
        stage.turn(reader, group.initiateCheckpoint("mark", stage.timer));
        stage.say("read", group.getMetrics().unreadBytes());
        stage.write("events", 6, 10, 11);
        stage.say("more", group.getMetrics().unreadBytes());
        group.resetReaderGroup(stage.on("events"));
        stage.say("reset", group.getMetrics().unreadBytes());
        stage.truncate("events", stage.cut("events", 0, 24, 1, 24));
        stage.tell("truncated", () -> group.getMetrics().unreadBytes());
    }
}
