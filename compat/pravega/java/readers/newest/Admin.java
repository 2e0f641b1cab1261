import io.pravega.client.admin.KeyValueTableInfo;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamInfo;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.ClientConfig;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.RetentionPolicy;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Sequence;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.TimeWindow;
import io.pravega.client.stream.notifications.EndOfDataNotification;
import io.pravega.client.stream.notifications.Listener;
import io.pravega.client.stream.notifications.Observable;
import io.pravega.client.stream.notifications.SegmentNotification;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.Insert;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.Remove;
import io.pravega.client.tables.TableEntryUpdate;
import io.pravega.client.tables.TableKey;
import io.pravega.client.tables.TableModification;
import io.pravega.client.tables.Version;
import java.net.URI;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Administration: what streams, scopes and tables say of themselves, and what settings hold. */
final class Admin {
    static void add(Map<String, Run.Scenario> all) {
        all.put("streams", Admin::list);
        all.put("stream-settings", Admin::configure);
        all.put("stream-updated", Admin::update);
        all.put("scope-refused", Admin::deleteScope);
        all.put("tables-listed", Admin::listTables);
        all.put("notifications", Admin::notify);
        all.put("client-settings", Admin::set);
    }

    private static List<String> names(Iterator<Stream> streams) {
        TreeSet<String> found = new TreeSet<>();
        streams.forEachRemaining(each -> found.add(each.getStreamName()));
        return new ArrayList<>(found);
    }

    private static void list(Stage stage) throws Exception {
        URI uri = stage.config.getControllerURI();
        try (StreamManager streams = StreamManager.create(uri)) {
            streams.createScope(stage.scope);
            StreamConfiguration plain = Stage.configOf(1);
            streams.createStream(stage.scope, "plain", plain);
            streams.createStream(stage.scope, "tagged",
                plain.toBuilder().tag("red").tags(List.of("blue", "green")).build());
            streams.createStream(stage.scope, "red", plain.toBuilder().tag("red").build());
            boolean listed = false;
            for (Iterator<String> scopes = streams.listScopes(); scopes.hasNext();) {
                listed |= scopes.next().equals(stage.scope);
            }
            stage.say("listed", listed);
            stage.say("red ones", names(streams.listStreams(stage.scope, "red")));
            stage.say("black ones", names(streams.listStreams(stage.scope, "black")));
            stage.say("tags", new TreeSet<>(streams.getStreamTags(stage.scope, "tagged")));
            stage.say("no tags", streams.getStreamTags(stage.scope, "plain").size());
            stage.tell("tags of a missing one", () -> streams.getStreamTags(stage.scope, "missing"));
            streams.sealStream(stage.scope, "plain");
            StreamInfo info = streams.fetchStreamInfo(stage.scope, "plain").get();
            stage.say("info", info.getScope().equals(stage.scope) + " " + info.getStreamName()
                + " sealed " + info.isSealed());
            stage.tell("info of a missing one", () ->
                streams.fetchStreamInfo(stage.scope, "missing").get().isSealed());
        }
    }

    private static String words(StreamConfiguration config) {
        ScalingPolicy scaling = config.getScalingPolicy();
        RetentionPolicy retention = config.getRetentionPolicy();
        return scaling.getScaleType() + " " + scaling.getTargetRate() + " by "
            + scaling.getScaleFactor() + " at least " + scaling.getMinNumSegments() + ", "
            + (retention == null ? "no retention" : retention.getRetentionType() + " "
                + retention.getRetentionParam() + " to " + retention.getRetentionMax())
            + ", tags " + new TreeSet<>(config.getTags())
            + ", silent " + config.getTimestampAggregationTimeout()
            + ", rolls at " + config.getRolloverSizeBytes();
    }

    private static void configure(Stage stage) throws Exception {
        stage.streams().createScope(stage.scope);
        Map<String, StreamConfiguration> wanted = Map.of(
            "bytes", StreamConfiguration.builder()
                .scalingPolicy(ScalingPolicy.byDataRate(100, 2, 2))
                .retentionPolicy(RetentionPolicy.bySizeBytes(1_000_000))
                .rolloverSizeBytes(1 << 20)
                .build(),
            "events", StreamConfiguration.builder()
                .scalingPolicy(ScalingPolicy.byEventRate(50, 3, 1))
                .retentionPolicy(RetentionPolicy.byTime(Duration.ofHours(2)))
                .timestampAggregationTimeout(5_000)
                .build(),
            "fixed", StreamConfiguration.builder()
                .scalingPolicy(ScalingPolicy.fixed(3))
                .retentionPolicy(RetentionPolicy.byTime(Duration.ofHours(2), Duration.ofHours(3)))
                .tag("lost").clearTags().tag("kept")
                .build());
        for (String name : new TreeSet<>(wanted.keySet())) {
            stage.say("create " + name,
                stage.streams().createStream(stage.scope, name, wanted.get(name)));
            StreamInfo info = stage.streams().fetchStreamInfo(stage.scope, name).get();
            stage.say(name, words(info.getStreamConfiguration()));
        }
        stage.say("only tags differ", StreamConfiguration.isTagOnlyChange(
            wanted.get("fixed"), wanted.get("fixed").toBuilder().tag("more").build()));
        stage.say("type", wanted.get("bytes").getScalingPolicy().getScaleType().getValue());
        stage.say("built", ScalingPolicy.builder().scaleType(ScalingPolicy.ScaleType.BY_RATE_IN_KBYTES_PER_SEC)
            .targetRate(1).scaleFactor(2).minNumSegments(3).build()
            .equals(ScalingPolicy.byDataRate(1, 2, 3)));
        stage.say("kept", RetentionPolicy.builder().retentionType(RetentionPolicy.RetentionType.SIZE)
            .retentionParam(1).retentionMax(2).build().equals(RetentionPolicy.bySizeBytes(1, 2)));
    }

    private static int segments(Stage stage, String stream) throws Exception {
        return stage.controller().getCurrentSegments(stage.scope, stream).get().getSegments().size();
    }

    private static void update(Stage stage) throws Exception {
        stage.create("events", 2);
        stage.write("events", 6, 0, 5);
        stage.say("up", stage.streams().updateStream(stage.scope, "events", Stage.configOf(4)));
        stage.say("four", segments(stage, "events"));
        stage.write("events", 6, 5, 10);
        stage.say("down", stage.streams().updateStream(stage.scope, "events", Stage.configOf(1)));
        stage.say("one", segments(stage, "events"));
        stage.write("events", 6, 10, 15);
        stage.groups().createReaderGroup("group", stage.often("events"));
        List<String> events = Stage.texts(stage.take(stage.reader("reader", "group"), 90));
        stage.say("events", events.size() + " " + Stage.isInOrder(events, 0));
        StreamConfiguration scaled = StreamConfiguration.builder()
            .scalingPolicy(ScalingPolicy.byEventRate(1_000, 2, 3)).build();
        stage.say("to a rate", stage.streams().updateStream(stage.scope, "events", scaled));
        stage.say("three", segments(stage, "events"));
        stage.say("to a lower number", stage.streams().updateStream(stage.scope, "events",
            StreamConfiguration.builder().scalingPolicy(ScalingPolicy.byEventRate(1_000, 2, 2)).build()));
        stage.say("still three", segments(stage, "events"));
        stage.tell("a missing one", () ->
            stage.streams().updateStream(stage.scope, "missing", Stage.configOf(1)));
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("a sealed one", () ->
            stage.streams().updateStream(stage.scope, "events", Stage.configOf(1)));
        stage.create("two", 2);
        stage.tell("below the least number", () ->
            stage.scale("two", List.of(0L, 1L), 0.0, 1.0));
        stage.say("two", segments(stage, "two"));
    }

    @SuppressWarnings("deprecation")
    private static void deleteScope(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.tell("not empty", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("with its streams", () -> stage.streams().deleteScope(stage.scope, true));
        stage.tell("again", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("there", () -> stage.streams().checkScopeExists(stage.scope));
    }

    private static void listTables(Stage stage) {
        stage.streams().createScope(stage.scope);
        URI uri = stage.config.getControllerURI();
        KeyValueTableConfiguration config = KeyValueTableConfiguration.builder()
            .partitionCount(2).primaryKeyLength(4).secondaryKeyLength(2).rolloverSizeBytes(0).build();
        try (KeyValueTableManager tables = KeyValueTableManager.create(uri)) {
            stage.say("made", tables.createKeyValueTable(stage.scope, "table", config));
            for (Iterator<KeyValueTableInfo> all = tables.listKeyValueTables(stage.scope);
                    all.hasNext();) {
                KeyValueTableInfo each = all.next();
                stage.say("listed", each.getScope().equals(stage.scope)
                    + " " + each.getKeyValueTableName());
            }
        }
        try (KeyValueTableFactory tables =
                 KeyValueTableFactory.withScope(stage.scope, stage.config)) {
            stage.say("modifications", modifications());
        }
        stage.say("lengths", config.getPartitionCount() + " " + config.getPrimaryKeyLength() + " "
            + config.getSecondaryKeyLength() + " " + config.getTotalKeyLength()
            + " " + config.getRolloverSizeBytes());
    }

    private static List<Object> modifications() {
        Version version = Version.NO_VERSION;
        TableKey key = new TableKey(ByteBuffer.wrap(new byte[4]));
        ByteBuffer value = ByteBuffer.wrap(new byte[1]);
        List<Object> found = new ArrayList<>();
        List<TableEntryUpdate> updates =
            List.of(new Insert(key, value), new Put(key, value), new Put(key, value, version));
        for (TableEntryUpdate each : updates) {
            found.add(each.isRemoval());
            found.add(each.getValue().remaining());
            found.add(each.getVersion());
        }
        found.add(new Insert(key, value).getVersion());
        found.add(new Put(key, value).getVersion());
        Remove remove = new Remove(key, version);
        found.add(remove.isRemoval() + " " + remove.getVersion());
        found.add(Version.fromString(version.toString()).equals(version));
        TableModification removal = remove;
        found.add(removal.isRemoval());
        found.add(removal.getVersion());
        found.add(removal.getKey().equals(key));
        return found;
    }

    private static void notify(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 3);
        stage.groups().createReaderGroup("group", stage.quick()
            .automaticCheckpointIntervalMillis(500)
            .stream(stage.stream("events"), stage.cut("events", 0, 0), stage.cut("events", 0, 36))
            .build());
        ReaderGroup group = stage.groups().getReaderGroup("group");
        BlockingQueue<SegmentNotification> counts = new LinkedBlockingQueue<>();
        BlockingQueue<EndOfDataNotification> ends = new LinkedBlockingQueue<>();
        Observable<SegmentNotification> segments = group.getSegmentNotifier(stage.timer);
        Observable<EndOfDataNotification> end = group.getEndOfDataNotifier(stage.timer);
        stage.say("types", segments.getType() + " " + end.getType());
        segments.registerListener(counts::add);
        Listener<SegmentNotification> other = counts::add;
        segments.registerListener(other);
        segments.unregisterListener(other);
        end.registerListener(ends::add);
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 3)));
        for (int tries = 0; tries < 60 && ends.isEmpty(); tries++) {
            reader.readNextEvent(500);
        }
        stage.say("end", ends.poll(20, TimeUnit.SECONDS) != null);
        SegmentNotification count = counts.poll(20, TimeUnit.SECONDS);
        stage.say("counted", count != null
            && count.getNumOfReaders() <= 1 && count.getNumOfSegments() <= 1);
        end.unregisterAllListeners();
        segments.unregisterAllListeners();
        group.close();
    }

    private static void set(Stage stage) throws Exception {
        ClientConfig config = ClientConfig.builder()
            .controllerURI(stage.config.getControllerURI())
            .connectTimeoutMilliSec(7_000)
            .maxConnectionsPerSegmentStore(3)
            .enableTlsToController(false)
            .enableTlsToSegmentStore(false)
            .validateHostName(false)
            .trustStore("")
            .build();
        stage.say("client", config.getConnectTimeoutMilliSec() + " "
            + config.getMaxConnectionsPerSegmentStore() + " " + config.isEnableTls()
            + config.isEnableTlsToController() + config.isEnableTlsToSegmentStore()
            + config.isValidateHostName() + " " + config.getTrustStore()
            + config.getCredentials() + config.getMetricListener());
        stage.say("again", config.toBuilder().build().equals(config));
        try (ReaderGroupManager groups =
                 ReaderGroupManager.withScope(stage.scope, config.getControllerURI())) {
            stage.tell("a missing group", () -> groups.getReaderGroup("missing").getGroupName());
        }
        ReaderConfig reader = ReaderConfig.builder().bufferSize(1 << 16).disableTimeWindows(true).build();
        stage.say("reader", reader.getBufferSize() + " " + reader.isDisableTimeWindows());
        ReaderGroupConfig group = ReaderGroupConfig.builder()
            .stream(stage.scope + "/events").disableAutomaticCheckpoints().build();
        ReaderGroupConfig read = ReaderGroupConfig.fromBytes(group.toBytes());
        stage.say("group", read.getAutomaticCheckpointIntervalMillis() + " "
            + read.toBuilder().build().equals(read));
        stage.say("from cuts", ReaderGroupConfig.builder()
            .startFromStreamCuts(Map.of(stage.stream("events"), stage.cut("events", 0, 12)))
            .startingStreamCuts(Map.of(stage.stream("events"), stage.cut("events", 0, 12)))
            .endingStreamCuts(Map.of(stage.stream("events"), stage.cut("events", 0, 24)))
            .build().getEndingStreamCuts().size());
        KeyValueTableClientConfiguration tables = KeyValueTableClientConfiguration.builder()
            .initialBackoffMillis(1).backoffMultiple(2).maxBackoffMillis(30).retryAttempts(4).build();
        stage.say("tables", tables.getInitialBackoffMillis() + " " + tables.getBackoffMultiple() + " "
            + tables.getMaxBackoffMillis() + " " + tables.getRetryAttempts());
        stage.say("by names", ReaderGroupConfig.builder()
            .stream(stage.scope + "/one", stage.cut("one", 0, 12))
            .stream(stage.scope + "/two", stage.cut("two", 0, 12), stage.cut("two", 0, 24))
            .build().getStartingStreamCuts().size());
        Serializer<String> texts = Stage.TEXT;
        stage.say("text", texts.deserialize(texts.serialize("some")));
        Sequence sequence = Sequence.create(1, 2);
        stage.say("sequence", sequence.getHighOrder() + " " + sequence.getLowOrder());
        Stream stream = Stream.of(stage.scope + "/events");
        stage.say("stream", stream.getScope().equals(stage.scope) + " " + stream.getScopedName());
        TimeWindow window = new TimeWindow(null, 5L);
        stage.say("window", window.isNearHeadOfStream() + " " + window.isNearTailOfStream());
    }
}
