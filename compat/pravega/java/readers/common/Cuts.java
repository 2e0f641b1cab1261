import io.pravega.client.BatchClientFactory;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.batch.StreamSegmentsIterator;
import io.pravega.client.control.impl.Controller;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

/** Stream cuts: those that a group makes, groups from one to another, and batches between two. */
final class Cuts {
    static void add(Map<String, Run.Scenario> all) {
        all.put("stream-cuts", Cuts::readBetween);
        all.put("wrong-cuts", Cuts::startWrongly);
        all.put("successors", Cuts::askController);
        all.put("batch", Cuts::readBatches);
        all.put("batch-over-a-scale", Cuts::readBatchesOverScale);
    }

    private static void readBetween(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 1, 0, 9);
        stage.groups().createReaderGroup("group", stage.on("events"));
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.take(reader, 9);
        StreamCut first = cutOf(stage, group, reader);
        stage.say("first", Stage.words(first));
        stage.write("events", 1, 9, 15);
        stage.take(reader, 6);
        StreamCut second = cutOf(stage, group, reader);
        stage.say("second", Stage.words(second));
        stage.say("as text", StreamCut.from(second.asText()).equals(second));
        stage.say("as bytes", StreamCut.fromBytes(second.toBytes()).equals(second));
        stage.write("events", 1, 15, 20);

        stage.groups().createReaderGroup("bounded",
            stage.quick().stream(stage.stream("events"), first, second).build());
        ReaderGroup bounded = stage.keep(stage.groups().getReaderGroup("bounded"));
        stage.say("unread", bounded.getMetrics().unreadBytes());
        EventStreamReader<String> other = stage.reader("other", "bounded");
        stage.say("between", Stage.texts(stage.take(other, 6)));
        stage.say("after", other.readNextEvent(1_000).getEvent());
        stage.say("after that", other.readNextEvent(1_000).getEvent());
        StreamCut end = cutOf(stage, bounded, other);
        stage.say("cut at the end", end == null ? null : Stage.words(end));

        stage.groups().createReaderGroup("tail",
            stage.quick().startFromStreamCuts(Map.of(stage.stream("events"), second)).build());
        stage.say("tail", Stage.texts(stage.take(stage.reader("third", "tail"), 5)));
        stage.groups().createReaderGroup("nothing",
            stage.quick().stream(stage.stream("events"), first, first).build());
        stage.say("nothing", stage.reader("fourth", "nothing").readNextEvent(1_000).getEvent());
    }

    private static StreamCut cutOf(
            Stage stage, ReaderGroup group, EventStreamReader<String> reader) throws Exception {
        CompletableFuture<Map<Stream, StreamCut>> pending = group.generateStreamCuts(stage.timer);
        return stage.turn(reader, pending).get(stage.stream("events"));
    }

    private static void startWrongly(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.write("events", 1, 0, 10);
        StreamCut middle = stage.cut("events", 0, 60);
        stage.tell("the end before the start", () ->
            stage.quick().stream(stage.stream("events"), middle, stage.cut("events", 0, 12)).build());
        stage.tell("of another stream", () ->
            stage.quick().stream(stage.stream("others"), middle).build());
        stage.tell("beyond the end", () -> readOne(stage, "beyond", stage.cut("events", 0, 1_200)));
        stage.tell("within an event", () -> readOne(stage, "within", stage.cut("events", 0, 30)));
        stage.tell("of a segment that is not there", () ->
            readOne(stage, "missing", stage.cut("events", Stage.id(7, 3), 0)));
    }

    private static Object readOne(Stage stage, String group, StreamCut from) {
        stage.groups().createReaderGroup(group,
            stage.quick().stream(stage.stream("events"), from).build());
        EventStreamReader<String> reader = stage.reader(group, group);
        for (int tries = 0; tries < 3; tries++) {
            String event = reader.readNextEvent(1_000).getEvent();
            if (event != null) {
                return event;
            }
        }
        return null;
    }

    private static void askController(Stage stage) throws Exception {
        Controller controller = stage.controller();
        stage.create("events", 1);
        stage.say("scaled", stage.scale("events", List.of(0L), 0.0, 0.5, 1.0));
        stage.say("again", stage.scale("events", List.of(Stage.id(1, 1)), 0.0, 0.25, 0.5));
        StreamCut tail = stage.cut("events",
            Stage.id(2, 1), 0, Stage.id(3, 2), 0, Stage.id(4, 2), 0);
        Map<String, StreamCut> cuts = new TreeMap<>(Map.of(
            "the start", stage.cut("events", 0, 0),
            "the end of the first", stage.cut("events", 0, -1),
            "two epochs", stage.cut("events", Stage.id(1, 1), -1, Stage.id(2, 1), 0),
            "the tail", tail,
            "a missing segment", stage.cut("events", 9, 0)));
        cuts.forEach((words, cut) -> {
            stage.tell("behind " + words, () ->
                words(controller.getSuccessors(cut).get().getSegments()));
            stage.tell("from " + words, () ->
                words(controller.getSegments(cut, tail).get().getSegments()));
        });
        stage.tell("behind a segment", () ->
            controller.getSuccessors(new Segment(stage.scope, "events", 0)).get()
                .getSegmentToPredecessor().size());
        stage.tell("at the beginning", () ->
            words(controller.getSegmentsAtTime(stage.stream("events"), 0).get().keySet()));
        stage.tell("much later", () -> words(controller
            .getSegmentsAtTime(stage.stream("events"), Long.MAX_VALUE).get().keySet()));
        stage.tell("of an epoch", () ->
            words(controller.getEpochSegments(stage.scope, "events", 1).get().getSegments()));
        stage.tell("of a missing epoch", () ->
            words(controller.getEpochSegments(stage.scope, "events", 7).get().getSegments()));
        stage.tell("open", () ->
            controller.isSegmentOpen(new Segment(stage.scope, "events", 0)).get());
    }

    private static TreeSet<String> words(Collection<Segment> segments) {
        TreeSet<String> words = new TreeSet<>();
        segments.forEach(segment -> words.add(Stage.words(segment)));
        return words;
    }

    private static void readBatches(Stage stage) {
        stage.create("events", 2);
        stage.write("events", 6, 0, 10);
        BatchClientFactory batch = stage.batch();
        Stream stream = stage.stream("events");
        StreamSegmentsIterator whole =
            batch.getSegments(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED);
        stage.say("whole from", Stage.words(whole.getStartStreamCut()));
        stage.say("whole to", Stage.words(whole.getEndStreamCut()));
        List<SegmentRange> all = listed(whole);
        stage.say("ranges", words(all));
        stage.say("counts", counts(batch, all));
        StreamCut from = stage.cut("events", 0, 24, 1, 36);
        StreamCut to = stage.cut("events", 0, 120, 1, 60);
        List<SegmentRange> part = listed(batch.getSegments(stream, from, to));
        stage.say("part", words(part));
        stage.say("events of the part", events(batch, part));
        stage.tell("until a cut", () ->
            ranges(batch.getSegments(stream, StreamCut.UNBOUNDED, to)));
        stage.tell("from a cut", () ->
            ranges(batch.getSegments(stream, from, StreamCut.UNBOUNDED)));
        stage.tell("backwards", () -> ranges(batch.getSegments(stream, to, from)));
        stage.tell("a missing stream", () -> ranges(batch.getSegments(
            stage.stream("missing"), StreamCut.UNBOUNDED, StreamCut.UNBOUNDED)));
        stage.truncate("events", stage.cut("events", 0, 48, 1, 48));
        stage.tell("truncated", () -> ranges(
            batch.getSegments(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED)));
        stage.tell("events that were truncated", () -> events(batch, part));
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("sealed", () -> ranges(
            batch.getSegments(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED)));
    }

    private static void readBatchesOverScale(Stage stage) throws Exception {
        stage.create("events", 1);
        stage.write("events", 6, 0, 10);
        stage.say("scaled", stage.scale("events", List.of(0L), 0.0, 0.5, 1.0));
        stage.write("events", 6, 10, 20);
        BatchClientFactory batch = stage.batch();
        Stream stream = stage.stream("events");
        StreamSegmentsIterator whole =
            batch.getSegments(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED);
        stage.say("whole from", Stage.words(whole.getStartStreamCut()));
        stage.say("whole to", Stage.words(whole.getEndStreamCut()));
        List<SegmentRange> all = listed(whole);
        stage.say("ranges", words(all));
        stage.say("counts", counts(batch, all));
        StreamCut mixed = stage.cut("events", Stage.id(1, 1), 13, Stage.id(2, 1), 26);
        stage.tell("to a cut behind the scale", () -> ranges(
            batch.getSegments(stream, stage.cut("events", 0, 120), mixed)));
    }

    private static List<SegmentRange> listed(StreamSegmentsIterator found) {
        List<SegmentRange> ranges = new ArrayList<>();
        found.getIterator().forEachRemaining(ranges::add);
        return ranges;
    }

    private static Map<String, String> ranges(StreamSegmentsIterator found) {
        return words(listed(found));
    }

    private static Map<String, String> words(List<SegmentRange> ranges) {
        Map<String, String> words = new TreeMap<>();
        for (SegmentRange range : ranges) {
            words.put(place(range), range.getStartOffset() + ".." + range.getEndOffset());
        }
        return words;
    }

    private static String place(SegmentRange range) {
        return (int) range.getSegmentId() + "." + (range.getSegmentId() >> 32);
    }

    private static Map<String, Integer> counts(BatchClientFactory batch, List<SegmentRange> ranges) {
        Map<String, Integer> counts = new TreeMap<>();
        events(batch, ranges).forEach((place, events) -> counts.put(place, events.size()));
        return counts;
    }

    private static Map<String, List<String>> events(
            BatchClientFactory batch, List<SegmentRange> ranges) {
        Map<String, List<String>> events = new TreeMap<>();
        for (SegmentRange range : ranges) {
            List<String> read = new ArrayList<>();
            try (SegmentIterator<String> segment = batch.readSegment(range, Stage.TEXT)) {
                segment.forEachRemaining(read::add);
            }
            events.put(place(range), read);
        }
        return events;
    }
}
