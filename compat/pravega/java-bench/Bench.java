import io.pravega.client.BatchClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import java.util.concurrent.Semaphore;

/**
 * Does one work by a writer or a reader of a stream of one segment: URI WORK STREAM COUNT SIZE WARMUP
 *
 * <pre>
 * write      COUNT events, 2,000 of them on their way at most
 * latency    COUNT events, one after the other
 * read       COUNT events that are there, by the batch client
 * </pre>
 *
 * It prints `ready` when the warm-up is over, waits for a line, works, and prints `done`; of latency
 * also `p50 MICROSECONDS` and `p99 MICROSECONDS`.
 */
public final class Bench {
    private static final String SCOPE = "bench";
    private static final int WINDOW = 2_000;
    private static final ByteBufferSerializer BYTES = new ByteBufferSerializer();

    private final ClientConfig config;
    private final String stream;
    private final ByteBuffer event;

    private Bench(String uri, String stream, int size) {
        config = ClientConfig.builder().controllerURI(URI.create(uri)).build();
        this.stream = stream;
        byte[] bytes = new byte[size];
        Arrays.fill(bytes, (byte) 'x');
        event = ByteBuffer.wrap(bytes);
    }

    public static void main(String[] given) throws Exception {
        Bench bench = new Bench(given[0], given[2], Integer.parseInt(given[4]));
        bench.run(given[1], Integer.parseInt(given[3]), Integer.parseInt(given[5]));
        System.exit(0);
    }

    private void run(String work, int count, int warmup) throws Exception {
        try (StreamManager streams = StreamManager.create(config)) {
            streams.createScope(SCOPE);
            streams.createStream(SCOPE, stream, StreamConfiguration.builder()
                .scalingPolicy(ScalingPolicy.fixed(1)).build());
        }
        try (EventStreamClientFactory clients = EventStreamClientFactory.withScope(SCOPE, config);
             EventStreamWriter<ByteBuffer> writer = clients.createEventWriter(
                 stream, BYTES, EventWriterConfig.builder().build())) {
            switch (work) {
                case "write" -> {
                    write(writer, warmup);
                    begin();
                    write(writer, count);
                    System.out.println("done");
                }
                case "latency" -> {
                    time(writer, warmup);
                    begin();
                    long[] micros = time(writer, count);
                    System.out.println("done");
                    System.out.println("p50 " + micros[count / 2]);
                    System.out.println("p99 " + micros[count * 99 / 100]);
                }
                case "read" -> {
                    write(writer, count);
                    read(warmup);
                    begin();
                    int found = read(count);
                    System.out.println(found == count ? "done" : "only " + found);
                }
                default -> throw new IllegalArgumentException(work);
            }
        }
    }

    private static void begin() throws Exception {
        System.out.println("ready");
        System.in.read();
    }

    private void write(EventStreamWriter<ByteBuffer> writer, int count) throws Exception {
        Semaphore room = new Semaphore(WINDOW);
        for (int number = 0; number < count; number++) {
            room.acquire();
            writer.writeEvent("key", event.duplicate()).whenComplete((done, error) -> {
                if (error != null) {
                    error.printStackTrace();
                    System.exit(1);
                }
                room.release();
            });
        }
        room.acquire(WINDOW);
    }

    private long[] time(EventStreamWriter<ByteBuffer> writer, int count) throws Exception {
        long[] micros = new long[count];
        for (int number = 0; number < count; number++) {
            long begun = System.nanoTime();
            writer.writeEvent("key", event.duplicate()).get();
            micros[number] = (System.nanoTime() - begun) / 1_000;
        }
        Arrays.sort(micros);
        return micros;
    }

    private int read(int most) {
        int found = 0;
        try (BatchClientFactory batch = BatchClientFactory.withScope(SCOPE, config)) {
            Iterator<SegmentRange> ranges = batch.getSegments(
                Stream.of(SCOPE, stream), StreamCut.UNBOUNDED, StreamCut.UNBOUNDED).getIterator();
            while (ranges.hasNext()) {
                try (SegmentIterator<ByteBuffer> events = batch.readSegment(ranges.next(), BYTES)) {
                    while (found < most && events.hasNext()) {
                        if (events.next().remaining() != event.remaining()) {
                            throw new IllegalStateException("an event of another size");
                        }
                        found++;
                    }
                }
            }
        }
        return found;
    }
}
