import io.pravega.client.BatchClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.control.impl.Controller;
import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.StreamCutImpl;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What a scenario has: a scope of its own, clients of it, and a voice. All is closed after it. */
final class Stage {
    static final UTF8StringSerializer TEXT = new UTF8StringSerializer();
    static final int READ_MS = 2_000;
    static final int TRIES = 15;
    static final int LIMIT_S = 25;
    private static final long SECOND = 1_000_000_000;

    final String name;
    final String scope;
    final ClientConfig config;
    final ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private volatile boolean ended;
    private StreamManager streams;
    private ReaderGroupManager groups;
    private EventStreamClientFactory clients;
    private Controller controller;

    /** An action that may be refused. */
    interface Action {
        Object run() throws Exception;
    }

    Stage(URI uri, String name, String suffix) {
        this.name = name;
        this.scope = name + suffix;
        this.config = ClientConfig.builder().controllerURI(uri).build();
    }

    <T extends AutoCloseable> T keep(T one) {
        opened.push(one);
        return one;
    }

    void closeAll() {
        Thread closing = new Thread(() -> {
            timer.shutdownNow();
            for (AutoCloseable one : opened) {
                try {
                    one.close();
                } catch (Exception error) {
                    System.err.println(name + ": closing: " + error);
                }
            }
        });
        closing.setDaemon(true);
        closing.start();
    }

    /** Say how it ended, and nothing more: what hangs may go on. */
    void end(String how) {
        say("end", how);
        ended = true;
    }

    void say(String key, Object value) {
        if (ended) {
            return;
        }
        String text = String.valueOf(value).replace(scope + "/", "").replace('\n', ' ');
        System.out.println(name + " " + key + "=" + text);
    }

    /** Say what an action gives, or the classes of what it throws, or that it hangs. */
    void tell(String key, Action action) {
        tell(key, LIMIT_S, action);
    }

    void tell(String key, int limitS, Action action) {
        CompletableFuture<Object> given = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                given.complete(action.run());
            } catch (Throwable error) {
                given.complete(classes(error));
            }
        });
        thread.setDaemon(true);
        thread.start();
        try {
            say(key, given.get(limitS, TimeUnit.SECONDS));
        } catch (TimeoutException error) {
            say(key, "hangs");
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Return the names of an exception's class and of the deepest cause's. */
    static String classes(Throwable error) {
        Throwable outer = error;
        while ((outer instanceof ExecutionException || outer instanceof CompletionException)
                && outer.getCause() != null) {
            outer = outer.getCause();
        }
        Throwable deepest = outer;
        while (deepest.getCause() != null) {
            deepest = deepest.getCause();
        }
        String last = deepest.getClass().getSimpleName();
        if (deepest instanceof io.grpc.StatusRuntimeException refusal) {
            last += " " + refusal.getStatus().getCode();
        }
        return outer == deepest ? last : outer.getClass().getSimpleName() + " of " + last;
    }

    StreamManager streams() {
        if (streams == null) {
            streams = keep(StreamManager.create(config));
        }
        return streams;
    }

    ReaderGroupManager groups() {
        if (groups == null) {
            groups = keep(ReaderGroupManager.withScope(scope, config));
        }
        return groups;
    }

    EventStreamClientFactory clients() {
        if (clients == null) {
            clients = keep(EventStreamClientFactory.withScope(scope, config));
        }
        return clients;
    }

    BatchClientFactory batch() {
        return keep(BatchClientFactory.withScope(scope, config));
    }

    Controller controller() {
        if (controller == null) {
            ControllerImplConfig settings =
                ControllerImplConfig.builder().clientConfig(config).retryAttempts(2).build();
            controller = keep(new ControllerImpl(settings, timer));
        }
        return controller;
    }

    Stream stream(String stream) {
        return Stream.of(scope, stream);
    }

    /** Make the scope, if it is not there, and a stream. */
    void create(String stream, int segments) {
        streams().createScope(scope);
        streams().createStream(scope, stream, configOf(segments));
    }

    static StreamConfiguration configOf(int segments) {
        return StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(segments)).build();
    }

    /** Write events KEY:NUMBER with their keys, each key's numbers in order, and wait for all. */
    void write(String stream, int keys, int from, int to) {
        try (EventStreamWriter<String> writer = writer(stream)) {
            List<CompletableFuture<Void>> written = new ArrayList<>();
            for (int number = from; number < to; number++) {
                for (int key = 0; key < keys; key++) {
                    written.add(writer.writeEvent("k" + key, "k" + key + ":" + number));
                }
            }
            writer.flush();
            written.forEach(CompletableFuture::join);
        }
    }

    EventStreamWriter<String> writer(String stream) {
        return clients().createEventWriter(stream, TEXT, EventWriterConfig.builder().build());
    }

    /** Return the beginning of a group's configuration: quick, and without automatic checkpoints. */
    ReaderGroupConfig.ReaderGroupConfigBuilder quick() {
        return ReaderGroupConfig.builder()
            .groupRefreshTimeMillis(200)
            .automaticCheckpointIntervalMillis(-1);
    }

    ReaderGroupConfig on(String stream) {
        return quick().stream(stream(stream)).build();
    }

    /** Return a configuration with automatic checkpoints: readers let ended segments go at one. */
    ReaderGroupConfig often(String stream) {
        return quick().automaticCheckpointIntervalMillis(500).stream(stream(stream)).build();
    }

    EventStreamReader<String> reader(String id, String group) {
        return keep(clients().createReader(id, group, TEXT,
            ReaderConfig.builder().initialAllocationDelay(0).build()));
    }

    /** Read that many events, checkpoints left out; fewer if no event comes in a while. */
    List<EventRead<String>> take(EventStreamReader<String> reader, int count) {
        List<EventRead<String>> found = new ArrayList<>();
        long until = System.nanoTime() + LIMIT_S * SECOND;
        while (found.size() < count && System.nanoTime() < until) {
            EventRead<String> read = reader.readNextEvent(READ_MS);
            if (read.getEvent() != null) {
                found.add(read);
                until = System.nanoTime() + LIMIT_S * SECOND;
            }
        }
        return found;
    }

    /** Wait until readers ask for their group's state at their next read. */
    static void awaitRefresh() throws InterruptedException {
        Thread.sleep(1_000);
    }

    static List<String> texts(List<EventRead<String>> reads) {
        List<String> found = new ArrayList<>();
        reads.forEach(read -> found.add(read.getEvent()));
        return found;
    }

    /** Read on until a checkpoint comes, and return its name; null if none comes. */
    String checkpoint(EventStreamReader<String> reader) {
        long until = System.nanoTime() + LIMIT_S * SECOND;
        while (System.nanoTime() < until) {
            EventRead<String> read = reader.readNextEvent(READ_MS);
            if (read.isCheckpoint()) {
                return read.getCheckpointName();
            }
        }
        return null;
    }

    /** Let a reader pass two automatic checkpoints, and return where its group is then, in words. */
    String settled(EventStreamReader<String> reader, ReaderGroup group, String stream) {
        checkpoint(reader);
        checkpoint(reader);
        reader.readNextEvent(READ_MS / 10);
        return words(group.getStreamCuts().get(stream(stream)));
    }

    /** Let a reader read until a future is done; return its value. */
    <T> T turn(EventStreamReader<String> reader, CompletableFuture<T> wanted) throws Exception {
        long until = System.nanoTime() + LIMIT_S * SECOND;
        while (System.nanoTime() < until && !wanted.isDone()) {
            reader.readNextEvent(READ_MS / 10);
        }
        return wanted.get(1, TimeUnit.SECONDS);
    }

    /** Tell whether each key's numbers rise by one from its first; `from` is that of all keys. */
    static boolean isInOrder(List<String> events, int from) {
        Map<String, Integer> next = new HashMap<>();
        for (String event : events) {
            String[] parts = event.split(":");
            int number = Integer.parseInt(parts[1]);
            if (number != next.getOrDefault(parts[0], from)) {
                return false;
            }
            next.put(parts[0], number + 1);
        }
        return true;
    }

    /** Return segments and offsets of a cut in words, as {0.#epoch.0=30}. */
    static String words(StreamCut cut) {
        if (cut.equals(StreamCut.UNBOUNDED)) {
            return "unbounded";
        }
        Map<String, Long> found = new TreeMap<>();
        cut.asImpl().getPositions().forEach((segment, offset) -> found.put(words(segment), offset));
        return found.toString();
    }

    /** Return an event's place in words: STREAM/SEGMENT:OFFSET-SIZE. */
    String place(EventRead<String> read) {
        return read.getEventPointer().toString().replace(scope + "/", "");
    }

    static String words(Segment segment) {
        return segment.getStreamName() + "/" + (int) segment.getSegmentId()
            + "." + (segment.getSegmentId() >> 32);
    }

    StreamCut cut(String stream, Object... segmentsAndOffsets) {
        Map<Segment, Long> positions = new HashMap<>();
        for (int index = 0; index < segmentsAndOffsets.length; index += 2) {
            long id = ((Number) segmentsAndOffsets[index]).longValue();
            long offset = ((Number) segmentsAndOffsets[index + 1]).longValue();
            positions.put(new Segment(scope, stream, id), offset);
        }
        return new StreamCutImpl(stream(stream), positions);
    }

    /** Return the id of a segment that a scale made. */
    static long id(int number, int epoch) {
        return ((long) epoch << 32) + number;
    }

    /** Replace segments by others, of which `bounds` are the ends: 0.0, 0.5, 1.0 are two. */
    boolean scale(String stream, List<Long> sealed, double... bounds) throws Exception {
        Map<Double, Double> ranges = new TreeMap<>();  // in order, as the numbers of segments are
        for (int index = 1; index < bounds.length; index++) {
            ranges.put(bounds[index - 1], bounds[index]);
        }
        return controller().scaleStream(stream(stream), sealed, ranges, timer).getFuture().get();
    }

    boolean truncate(String stream, StreamCut cut) {
        return streams().truncateStream(scope, stream, cut);
    }
}
