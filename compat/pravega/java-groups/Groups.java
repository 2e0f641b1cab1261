import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.control.impl.Controller;
import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.client.segment.impl.Segment;
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
import io.pravega.client.stream.impl.Agreed;
import io.pravega.client.stream.impl.StreamCutImpl;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.shared.security.auth.DefaultCredentials;
import java.net.URI;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Plays with two groups of readers, scene by scene: URI SCOPE [USER PASSWORD]. It makes the scope.
 *
 * After each scene it prints what the client says of each group, then `scene NAME`, and waits for a
 * line of its input. Nothing changes meanwhile: readers write their state only while they read.
 *
 * <pre>
 * GROUP members=A,B unread=BYTES checkpoint=SEGMENT:OFFSET,… positions=… ends=…
 * </pre>
 */
public final class Groups {
    private static final UTF8StringSerializer TEXT = new UTF8StringSerializer();
    private static final long EVENT = 8 + 9;
    private static final long SECOND = 1_000_000_000;
    private static final int LIMIT_S = 40;
    private static final int SHORT_S = 2;
    private static final int TRIES = 10;

    private final String scope;
    private final ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
    private final StreamManager streams;
    private final ReaderGroupManager groups;
    private final EventStreamClientFactory clients;
    private final SynchronizerClientFactory states;
    private final Controller controller;
    private final Map<String, ReaderGroup> made = new LinkedHashMap<>();
    private final Scanner input = new Scanner(System.in);
    private int written;
    private int read;

    public static void main(String[] given) throws Exception {
        try {
            ClientConfig.ClientConfigBuilder config =
                ClientConfig.builder().controllerURI(URI.create(given[0]));
            if (given.length > 2) {
                config.credentials(new DefaultCredentials(given[3], given[2]));
            }
            new Groups(config.build(), given[1]).play();
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);  // threads of the client would go on
        }
        System.exit(0);
    }

    private Groups(ClientConfig config, String scope) {
        this.scope = scope;
        streams = StreamManager.create(config);
        groups = ReaderGroupManager.withScope(scope, config);
        clients = EventStreamClientFactory.withScope(scope, config);
        states = SynchronizerClientFactory.withScope(scope, config);
        controller = new ControllerImpl(
            ControllerImplConfig.builder().clientConfig(config).build(), timer);
    }

    private void play() throws Exception {
        begin();
        say("created");
        EventStreamReader<String> first = reader("first", "plain");
        EventStreamReader<String> second = reader("second", "plain");
        read(8, LIMIT_S, first, second);
        say("joined");
        read(written, LIMIT_S, first, second);
        say("read");
        scale(List.of(0L), 0.0, 0.25, 0.5);
        scale(List.of(1L, id(2, 1), id(3, 1)), 0.0, 0.5, 1.0);
        write("one", 6);
        read(written, SHORT_S, first, second);
        say("scaled");
        checkpoint("one", first, second);
        say("checkpoint");
        for (int tries = 0; read < written && tries < TRIES; tries++) {
            checkpoint("more" + tries, first, second);  // readers let ended segments go at one
            read(written, SHORT_S, first, second);
        }
        say("through");
        checkpoint("last", first, second);
        say("checkpoint-again");
        write("two", 3);
        say("more");
        turn(made.get("plain").generateStreamCuts(timer), first, second);
        say("cuts");
        compact("plain");
        say("compacted");
        second.close();
        say("closed");
        compact("plain");
        say("compacted-again");
        EventStreamReader<String> lost = reader("lost", "bounded");
        read = 0;
        read(2, LIMIT_S, lost);
        say("bounded");
        made.get("bounded").readerOffline("lost", null);
        say("offline");
        made.get("plain").resetReaderGroup(
            config().stream(stream("one")).stream(stream("two")).build());
        say("reset");
        compact("bounded");
        say("no-checkpoint");
    }

    private void begin() {
        streams.createScope(scope);
        for (String name : List.of("one", "two")) {
            streams.createStream(scope, name, StreamConfiguration.builder()
                .scalingPolicy(ScalingPolicy.fixed(name.equals("one") ? 2 : 1)).build());
        }
        write("one", 20);
        write("two", 10);
        make("plain", config().stream(stream("one")).stream(stream("two")).build());
        make("bounded", config().stream(stream("two"), cut(EVENT), cut(6 * EVENT)).build());
    }

    private void make(String group, ReaderGroupConfig config) {
        groups.createReaderGroup(group, config);
        made.put(group, groups.getReaderGroup(group));
    }

    private static ReaderGroupConfig.ReaderGroupConfigBuilder config() {
        return ReaderGroupConfig.builder()
            .groupRefreshTimeMillis(200)
            .automaticCheckpointIntervalMillis(-1);
    }

    private Stream stream(String name) {
        return Stream.of(scope, name);
    }

    private StreamCut cut(long offset) {
        return new StreamCutImpl(stream("two"), Map.of(new Segment(scope, "two", 0), offset));
    }

    private static long id(int number, int epoch) {
        return ((long) epoch << 32) + number;
    }

    private void scale(List<Long> sealed, double... bounds) throws Exception {
        Map<Double, Double> ranges = new TreeMap<>();
        for (int index = 1; index < bounds.length; index++) {
            ranges.put(bounds[index - 1], bounds[index]);
        }
        if (!controller.scaleStream(stream("one"), sealed, ranges, timer).getFuture().get()) {
            throw new IllegalStateException("not scaled");
        }
    }

    /** Write events of EVENT bytes, and wait for them. */
    private void write(String stream, int count) {
        try (EventStreamWriter<String> writer =
                 clients.createEventWriter(stream, TEXT, EventWriterConfig.builder().build())) {
            for (int each = 0; each < count; each++, written++) {
                writer.writeEvent("key " + written, String.format("event %03d", written));
            }
            writer.flush();
        }
    }

    private EventStreamReader<String> reader(String id, String group) {
        ReaderConfig config = ReaderConfig.builder().initialAllocationDelay(0).build();
        return clients.createReader(id, group, TEXT, config);
    }

    /** Let readers read in turn until so many events are read in all, or for so long. */
    @SafeVarargs
    private void read(int most, int seconds, EventStreamReader<String>... readers) {
        long until = System.nanoTime() + seconds * SECOND;
        for (int turn = 0; read < most && System.nanoTime() < until; turn++) {
            take(readers[turn % readers.length]);
        }
    }

    private void take(EventStreamReader<String> reader) {
        if (reader.readNextEvent(200).getEvent() != null) {
            read++;
        }
    }

    @SafeVarargs
    private void checkpoint(String name, EventStreamReader<String>... readers) throws Exception {
        turn(made.get("plain").initiateCheckpoint(name, timer), readers);
    }

    /** Let readers read until something is done. */
    @SafeVarargs
    private void turn(CompletableFuture<?> wanted, EventStreamReader<String>... readers)
            throws Exception {
        long until = System.nanoTime() + LIMIT_S * SECOND;
        for (int turn = 0; !wanted.isDone() && System.nanoTime() < until; turn++) {
            take(readers[turn % readers.length]);
        }
        wanted.get(1, TimeUnit.SECONDS);
    }

    private void compact(String group) {
        try (Agreed agreed = new Agreed(states, group)) {
            agreed.compact();
        }
    }

    private void say(String scene) {
        made.forEach((name, group) -> {
            try (Agreed agreed = new Agreed(states, name)) {
                System.out.println(name
                    + " members=" + String.join(",", new TreeSet<>(group.getOnlineReaders()))
                    + " unread=" + unread(group) + " " + agreed.words());
            }
        });
        System.out.println("scene " + scene);
        input.nextLine();
    }

    private static String unread(ReaderGroup group) {
        try {
            return String.valueOf(group.getMetrics().unreadBytes());
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }
}
