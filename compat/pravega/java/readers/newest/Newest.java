import io.pravega.client.admin.StreamInfo;
import io.pravega.client.control.impl.Controller;
import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReaderGroupConfig.StreamDataRetention;
import io.pravega.client.stream.RetentionPolicy;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** What the oldest client does not have: groups that the controller knows, and that hold data. */
final class Newest {
    static void add(Map<String, Run.Scenario> all) {
        Admin.add(all);
        Bytes.add(all);
        States.add(all);
        Writers.add(all);
        all.put("read-completed", Newest::readToTheEnd);
        all.put("created", Newest::createTwice);
        all.put("group-of-controller", Newest::askController);
        all.put("group-updated", Newest::update);
        all.put("group-updated-wrongly", Newest::updateWrongly);
        all.put("reset-to-the-last", Newest::resetToTheLast);
        all.put("subscribers", Newest::subscribe);
        all.put("retention-by-hand", Newest::releaseByHand);
        all.put("retention-by-checkpoint", Newest::releaseByCheckpoint);
        all.put("scope-with-all", Newest::deleteScope);
        all.put("event-by-manager", Newest::fetchByManager);
    }

    private static ReaderGroupConfig holding(Stage stage, StreamDataRetention type) {
        return stage.quick().retentionType(type).stream(stage.stream("events")).build();
    }

    private static void readToTheEnd(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("bounded", stage.quick()
            .automaticCheckpointIntervalMillis(500).stream(stage.stream("events"), stage.cut("events", 0, 12), stage.cut("events", 0, 48))
            .build());
        EventStreamReader<String> bounded = stage.reader("reader", "bounded");
        stage.say("bounded", Stage.texts(stage.take(bounded, 3)));
        stage.say("completed", isCompleted(bounded));
        EventRead<String> after = bounded.readNextEvent(Stage.READ_MS);
        stage.say("event", after.getEvent());
        stage.say("still", after.isReadCompleted());
        stage.groups().createReaderGroup("group", stage.often("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", stage.take(reader, 10).size());
        stage.say("not completed", reader.readNextEvent(1_000).isReadCompleted());
        stage.streams().sealStream(stage.scope, "events");
        stage.say("sealed", isCompleted(reader));
    }

    private static boolean isCompleted(EventStreamReader<String> reader) {
        for (int tries = 0; tries < 2 * Stage.TRIES; tries++) {
            if (reader.readNextEvent(500).isReadCompleted()) {
                return true;
            }
        }
        return false;
    }

    private static void createTwice(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.tell("first", () -> stage.groups().createReaderGroup("group", stage.on("events")));
        stage.tell("the same", () -> stage.groups().createReaderGroup("group", stage.on("events")));
        stage.tell("another", () -> stage.groups().createReaderGroup("group", stage.on("others")));
        stage.tell("another retention", () -> stage.groups().createReaderGroup(
            "group", holding(stage, StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT)));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        group.resetReaderGroup(stage.on("events"));
        stage.tell("the same after a reset", () ->
            stage.groups().createReaderGroup("group", stage.on("events")));
    }

    /** Return what a configuration says, without its random id. */
    private static String words(ReaderGroupConfig config) {
        return config.getRetentionType() + " generation " + config.getGeneration()
            + " refresh " + config.getGroupRefreshTimeMillis()
            + " checkpoints " + config.getAutomaticCheckpointIntervalMillis()
            + " at most " + config.getMaxOutstandingCheckpointRequest()
            + " from " + cuts(config.getStartingStreamCuts())
            + " to " + cuts(config.getEndingStreamCuts());
    }

    private static String cuts(Map<Stream, StreamCut> cuts) {
        TreeSet<String> found = new TreeSet<>();
        cuts.forEach((stream, cut) -> found.add(stream.getStreamName() + ": " + Stage.words(cut)));
        return found.toString();
    }

    private static void askController(Stage stage) {
        Controller controller = stage.controller();
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        ReaderGroupConfig config = ReaderGroupConfig.cloneConfig(
            stage.quick().stream(stage.stream("events"), stage.cut("events", 0, 12),
                stage.cut("events", 0, 60)).build(), UUID.randomUUID(), 0L);
        stage.tell("get a missing one", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        stage.tell("create", () ->
            words(controller.createReaderGroup(stage.scope, "group", config).get()));
        stage.tell("get", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        stage.tell("the same id", () ->
            controller.getReaderGroupConfig(stage.scope, "group").get().getReaderGroupId()
                .equals(config.getReaderGroupId()));
        stage.tell("create with another id", () ->
            controller.createReaderGroup(stage.scope, "group", ReaderGroupConfig.cloneConfig(
                stage.on("events"), UUID.randomUUID(), 0L)).get()
                .getReaderGroupId().equals(config.getReaderGroupId()));
        stage.tell("streams", () -> Groups.listed(stage, stage.scope));
        stage.tell("delete with another id", () ->
            controller.deleteReaderGroup(stage.scope, "group", UUID.randomUUID()).get());
        stage.tell("delete", () -> controller.deleteReaderGroup(
            stage.scope, "group", config.getReaderGroupId()).get());
        stage.tell("delete again", () -> controller.deleteReaderGroup(
            stage.scope, "group", config.getReaderGroupId()).get());
        stage.tell("streams at last", () -> Groups.listed(stage, stage.scope));
        stage.tell("a bad name", () ->
            controller.createReaderGroup(stage.scope, "a/b", config).get());
        stage.tell("a missing scope", () ->
            controller.createReaderGroup(stage.scope + "-missing", "group", config).get());
        stage.tell("a generation above 0", () ->
            words(controller.createReaderGroup(stage.scope, "seven", ReaderGroupConfig.cloneConfig(
                stage.on("events"), UUID.randomUUID(), 7L)).get()));
        stage.tell("and asked for", () ->
            words(controller.getReaderGroupConfig(stage.scope, "seven").get()));
    }

    private static void update(Stage stage) {
        Controller controller = stage.controller();
        stage.create("events", 1);
        stage.create("others", 1);
        stage.groups().createReaderGroup("group", stage.on("events"));
        stage.tell("first", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        group.resetReaderGroup(stage.on("others"));
        stage.tell("reset", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        group.resetReaderGroup(
            holding(stage, StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT));
        stage.tell("holding", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        stage.tell("subscribers", () -> controller.listSubscribers(stage.scope, "events").get());
        group.resetReaderGroup(stage.on("events"));
        stage.tell("not holding", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
        stage.tell("no subscribers", () -> controller.listSubscribers(stage.scope, "events").get());
        stage.say("streams", group.getStreamNames());
    }

    private static void updateWrongly(Stage stage) throws Exception {
        Controller controller = stage.controller();
        stage.create("events", 1);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroupConfig now = controller.getReaderGroupConfig(stage.scope, "group").get();
        stage.tell("a missing group", () ->
            controller.updateReaderGroup(stage.scope, "missing", now).get());
        stage.tell("another id", () ->
            controller.updateReaderGroup(stage.scope, "group", ReaderGroupConfig.cloneConfig(
                now, UUID.randomUUID(), now.getGeneration())).get());
        stage.tell("a later generation", () ->
            controller.updateReaderGroup(stage.scope, "group", ReaderGroupConfig.cloneConfig(
                now, now.getReaderGroupId(), now.getGeneration() + 1)).get());
        stage.tell("an earlier generation", () ->
            controller.updateReaderGroup(stage.scope, "group", ReaderGroupConfig.cloneConfig(
                now, now.getReaderGroupId(), now.getGeneration() - 1)).get());
        stage.tell("the same", () ->
            controller.updateReaderGroup(stage.scope, "group", now).get());
        stage.tell("the same again", () ->
            controller.updateReaderGroup(stage.scope, "group", now).get());
        stage.tell("now", () ->
            words(controller.getReaderGroupConfig(stage.scope, "group").get()));
    }

    private static void resetToTheLast(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.take(reader, 3);
        group.resetReaderGroup();
        stage.say("without a checkpoint",
            Stage.texts(stage.take(stage.reader("second", "group"), 5)));
        EventStreamReader<String> third = stage.reader("third", "group");
        stage.tell("two on one segment", () -> third.readNextEvent(500).getEvent());
        third.close();
        group.readerOffline("second", null);
        EventStreamReader<String> fourth = stage.reader("fourth", "group");
        stage.say("after a lost one", Stage.texts(stage.take(fourth, 2)));
        CompletableFuture<Checkpoint> pending = group.initiateCheckpoint("mark", stage.timer);
        Stage.awaitRefresh();
        stage.say("checkpoint", fourth.readNextEvent(Stage.READ_MS).getCheckpointName());
        stage.say("after", Stage.texts(stage.take(fourth, 4)));
        pending.get(20, TimeUnit.SECONDS);
        group.resetReaderGroup();
        stage.say("with a checkpoint", Stage.texts(stage.take(stage.reader("fifth", "group"), 2)));
        CompletableFuture<Checkpoint> never = group.initiateCheckpoint("never", stage.timer);
        group.cancelOutstandingCheckpoints();
        stage.tell("cancelled", () -> never.get(20, TimeUnit.SECONDS).getName());
    }

    private static void subscribe(Stage stage) throws Exception {
        Controller controller = stage.controller();
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.tell("none", () -> controller.listSubscribers(stage.scope, "events").get());
        stage.tell("of a missing stream", () ->
            controller.listSubscribers(stage.scope, "missing").get());
        stage.groups().createReaderGroup(
            "held", holding(stage, StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT));
        stage.groups().createReaderGroup("auto",
            holding(stage, StreamDataRetention.AUTOMATIC_RELEASE_AT_LAST_CHECKPOINT));
        stage.groups().createReaderGroup("loose", stage.on("events"));
        stage.tell("two", () ->
            new TreeSet<>(controller.listSubscribers(stage.scope, "events").get()));
        ReaderGroupConfig held = controller.getReaderGroupConfig(stage.scope, "held").get();
        UUID id = held.getReaderGroupId();
        String name = stage.scope + "/held";
        StreamCut cut = stage.cut("events", 0, 24);
        stage.tell("update", () -> controller.updateSubscriberStreamCut(
            stage.scope, "events", name, id, held.getGeneration(), cut).get());
        stage.tell("another generation", () -> controller.updateSubscriberStreamCut(
            stage.scope, "events", name, id, held.getGeneration() + 1, cut).get());
        stage.tell("another id", () -> controller.updateSubscriberStreamCut(
            stage.scope, "events", name, UUID.randomUUID(), held.getGeneration(), cut).get());
        stage.tell("back", () -> controller.updateSubscriberStreamCut(
            stage.scope, "events", name, id, held.getGeneration(), stage.cut("events", 0, 12)).get());
        stage.tell("beyond the end", () -> controller.updateSubscriberStreamCut(stage.scope,
            "events", name, id, held.getGeneration(), stage.cut("events", 0, 1_200)).get());
        stage.tell("a missing group", () -> controller.updateSubscriberStreamCut(stage.scope,
            "events", stage.scope + "/missing", id, held.getGeneration(), cut).get());
        stage.tell("a missing stream", () -> controller.updateSubscriberStreamCut(stage.scope,
            "missing", name, id, held.getGeneration(), stage.cut("missing", 0, 24)).get());
        ReaderGroup loose = stage.keep(stage.groups().getReaderGroup("loose"));
        stage.tell("a loose group", () -> {
            loose.updateRetentionStreamCut(Map.of(stage.stream("events"), cut));
            return "updated";
        });
        stage.groups().deleteReaderGroup("held");
        stage.tell("one", () -> controller.listSubscribers(stage.scope, "events").get());
    }

    /** Make a stream that gives up data by itself once groups that hold them let them go. */
    private static void createConsumed(Stage stage) {
        stage.streams().createScope(stage.scope);
        stage.streams().createStream(stage.scope, "events", StreamConfiguration.builder()
            .scalingPolicy(ScalingPolicy.fixed(1))
            .retentionPolicy(RetentionPolicy.bySizeBytes(1, Long.MAX_VALUE))
            .build());
        stage.write("events", 1, 0, 10);
    }

    private static String head(Stage stage) throws Exception {
        StreamInfo info = stage.streams().fetchStreamInfo(stage.scope, "events").get();
        return Stage.words(info.getHeadStreamCut()) + " to " + Stage.words(info.getTailStreamCut());
    }

    private static void releaseByHand(Stage stage) throws Exception {
        createConsumed(stage);
        stage.groups().createReaderGroup(
            "group", holding(stage, StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 4)));
        stage.tell("release", () -> {
            group.updateRetentionStreamCut(
                Map.of(stage.stream("events"), stage.cut("events", 0, 48)));
            return "done";
        });
        stage.tell("beyond the end", () -> {
            group.updateRetentionStreamCut(
                Map.of(stage.stream("events"), stage.cut("events", 0, 4_800)));
            return "done";
        });
        stage.tell("another stream", () -> {
            group.updateRetentionStreamCut(
                Map.of(stage.stream("others"), stage.cut("others", 0, 48)));
            return "done";
        });
        stage.tell("unread", () -> group.getMetrics().unreadBytes());
        stage.say("rest", Stage.texts(stage.take(reader, 6)));
    }

    private static void releaseByCheckpoint(Stage stage) throws Exception {
        createConsumed(stage);
        stage.groups().createReaderGroup("group",
            holding(stage, StreamDataRetention.AUTOMATIC_RELEASE_AT_LAST_CHECKPOINT));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 4)));
        CompletableFuture<Checkpoint> pending = group.initiateCheckpoint("mark", stage.timer);
        Stage.awaitRefresh();
        stage.say("checkpoint", reader.readNextEvent(Stage.READ_MS).getCheckpointName());
        stage.say("after", Stage.texts(stage.take(reader, 2)));
        stage.say("cut", Stage.words(pending.get(20, TimeUnit.SECONDS)
            .asImpl().getPositions().get(stage.stream("events"))));
        stage.tell("by hand", () -> {
            group.updateRetentionStreamCut(
                Map.of(stage.stream("events"), stage.cut("events", 0, 48)));
            return "done";
        });
        stage.say("rest", Stage.texts(stage.take(reader, 4)));
        stage.tell("head and tail", () -> head(stage));
    }

    private static void deleteScope(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.groups().createReaderGroup("group", stage.on("events"));
        stage.tell("head and tail", () -> head(stage));
        stage.tell("delete", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("delete all", () -> stage.streams().deleteScopeRecursive(stage.scope));
        stage.tell("there", () -> stage.streams().checkScopeExists(stage.scope));
        stage.tell("delete all again", () -> stage.streams().deleteScopeRecursive(stage.scope));
        stage.tell("streams", () -> Groups.listed(stage, stage.scope));
        stage.tell("group", () -> stage.groups().getReaderGroup("group").getGroupName());
        stage.tell("its configuration", () ->
            words(stage.controller().getReaderGroupConfig(stage.scope, "group").get()));
        stage.tell("again", () -> {
            stage.create("events", 1);
            return Groups.listed(stage, stage.scope);
        });
        stage.tell("group again", () ->
            stage.groups().createReaderGroup("group", stage.on("events")));
    }

    private static void fetchByManager(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventRead<String> read = stage.take(stage.reader("reader", "group"), 3).get(2);
        stage.tell("event", () -> stage.streams()
            .fetchEvent(read.getEventPointer(), Stage.TEXT).get(20, TimeUnit.SECONDS));
        stage.truncate("events", stage.cut("events", 0, 60));
        stage.tell("truncated", () -> stage.streams()
            .fetchEvent(read.getEventPointer(), Stage.TEXT).get(20, TimeUnit.SECONDS));
        stage.tell("head and tail", () -> head(stage));
    }
}
