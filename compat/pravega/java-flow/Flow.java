import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes and reads a stream at the same time: URI SCOPE STREAM. The stream is there.
 *
 * One writer writes events KEY:NUMBER, the numbers of each key in order, and two readers of a group
 * check them. The input has commands, one a line:
 *
 * <pre>
 * rate COUNT           writes so many events a second from now on; 0 at first
 * transactions COUNT   writes so many transactions of three events, and aborts each third one
 * end                  stops writing, waits for all that was written, prints what is wrong, and ends
 * </pre>
 *
 * Each half second it prints `written COUNT read COUNT committed COUNT aborted COUNT`.
 */
public final class Flow {
    private static final UTF8StringSerializer TEXT = new UTF8StringSerializer();
    private static final int KEYS = 40;
    private static final int UNDER_WAY = 2_000;
    private static final int EVENTS = 3;
    private static final int READ_MS = 500;
    private static final int SILENT_S = 60;

    private final Semaphore room = new Semaphore(UNDER_WAY);
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong stored = new AtomicLong();
    private final AtomicLong read = new AtomicLong();
    private final AtomicLong again = new AtomicLong();
    private final AtomicLong disordered = new AtomicLong();
    private final AtomicLong unwanted = new AtomicLong();
    private final AtomicLong committed = new AtomicLong();
    private final AtomicLong aborted = new AtomicLong();
    private final Map<String, Long> next = new HashMap<>();
    private volatile int rate;
    private volatile boolean writes = true;
    private volatile boolean reads = true;

    public static void main(String[] given) throws Exception {
        new Flow().run(given[0], given[1], given[2]);
        System.exit(0);
    }

    private void run(String uri, String scope, String stream) throws Exception {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(uri)).build();
        ReaderGroupConfig group = ReaderGroupConfig.builder()
            .stream(scope + "/" + stream)
            .groupRefreshTimeMillis(200)
            .automaticCheckpointIntervalMillis(500)
            .build();
        try (ReaderGroupManager groups = ReaderGroupManager.withScope(scope, config);
             EventStreamClientFactory clients = EventStreamClientFactory.withScope(scope, config)) {
            groups.createReaderGroup("flow", group);
            Thread[] readers = {
                begun(() -> readAll(clients, "one")), begun(() -> readAll(clients, "two"))};
            Thread writer = begun(() -> writeAll(clients, stream));
            begun(this::report);
            obey(clients, stream);
            writes = false;
            writer.join();
            awaitReaders();
            reads = false;
            for (Thread reader : readers) {
                reader.join();
            }
        }
        System.out.printf("written %d read %d committed %d aborted %d%n",
            stored.get(), read.get(), committed.get(), aborted.get());
        System.out.printf("missing %d again %d disordered %d unwanted %d%n",
            expected() - read.get(), again.get(), disordered.get(), unwanted.get());
    }

    private interface Work {
        void run() throws Exception;
    }

    private static Thread begun(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void obey(EventStreamClientFactory clients, String stream) throws Exception {
        Scanner input = new Scanner(System.in);
        while (input.hasNext()) {
            switch (input.next()) {
                case "rate" -> rate = input.nextInt();
                case "transactions" -> {
                    int count = input.nextInt();
                    transact(clients, stream, count);
                    System.out.println("transactions done");
                }
                case "end" -> {
                    return;
                }
                default -> throw new IllegalArgumentException("no such command");
            }
        }
    }

    private void writeAll(EventStreamClientFactory clients, String stream) throws Exception {
        try (EventStreamWriter<String> writer =
                 clients.createEventWriter(stream, TEXT, EventWriterConfig.builder().build())) {
            while (writes) {
                int now = rate;
                for (int index = 0; index < now / 20 && writes; index++) {
                    long number = sent.getAndIncrement();
                    String key = "k" + number % KEYS;
                    room.acquire();
                    writer.writeEvent(key, key + ":" + number / KEYS).whenComplete((done, error) -> {
                        if (error != null) {
                            error.printStackTrace();
                            System.exit(1);
                        }
                        stored.incrementAndGet();
                        room.release();
                    });
                }
                Thread.sleep(50);
            }
            writer.flush();
        }
    }

    private void transact(EventStreamClientFactory clients, String stream, int count)
            throws Exception {
        try (TransactionalEventStreamWriter<String> writer = clients.createTransactionalEventWriter(
                 "transactions", stream, TEXT, EventWriterConfig.builder().build())) {
            for (int each = 0; each < count; each++) {
                boolean isAborted = each % 3 == 2;
                Transaction<String> transaction = writer.beginTxn();
                for (int event = 0; event < EVENTS; event++) {
                    String key = isAborted ? "never" : "t";
                    long number = committed.get() * EVENTS + event;
                    transaction.writeEvent(key, key + ":" + number);
                }
                if (isAborted) {
                    transaction.abort();
                    aborted.incrementAndGet();
                } else {
                    transaction.commit();
                    while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                        Thread.sleep(5);
                    }
                    committed.incrementAndGet();
                }
            }
        }
    }

    private void readAll(EventStreamClientFactory clients, String name) {
        ReaderConfig config = ReaderConfig.builder().initialAllocationDelay(0).build();
        try (EventStreamReader<String> reader = clients.createReader(name, "flow", TEXT, config)) {
            while (reads) {
                String event = reader.readNextEvent(READ_MS).getEvent();
                if (event != null) {
                    take(event);
                }
            }
        }
    }

    private synchronized void take(String event) {
        String[] parts = event.split(":");
        long number = Long.parseLong(parts[1]);
        long wanted = next.getOrDefault(parts[0], 0L);
        if (parts[0].equals("never")) {
            unwanted.incrementAndGet();
        } else if (number < wanted) {
            again.incrementAndGet();
        } else {
            if (number > wanted) {
                disordered.incrementAndGet();
            }
            next.put(parts[0], number + 1);
            read.incrementAndGet();
        }
    }

    private long expected() {
        return stored.get() + committed.get() * EVENTS;
    }

    /** Wait until the readers have all, or nothing more comes. */
    private void awaitReaders() throws InterruptedException {
        long before = -1;
        long until = System.nanoTime();
        while (read.get() < expected() && (before != read.get() || System.nanoTime() < until)) {
            if (before != read.get()) {
                before = read.get();
                until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SILENT_S);
            }
            Thread.sleep(50);
        }
    }

    private void report() throws InterruptedException {
        while (true) {
            System.out.printf("written %d read %d committed %d aborted %d%n",
                stored.get(), read.get(), committed.get(), aborted.get());
            Thread.sleep(500);
        }
    }
}
