import io.pravega.client.admin.StreamManager;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.batch.StreamSegmentsIterator;
import io.pravega.client.BatchClientFactory;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionInfo;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Writers of events: several at once, large ones, and in transactions. */
final class Writers {
    static void add(Map<String, Run.Scenario> all) {
        all.put("written-together", Writers::writeTogether);
        all.put("events-in-parts", Writers::writeLarge);
        all.put("transactions", Writers::transact);
        all.put("transactions-wrongly", Writers::transactWrongly);
        all.put("transactions-completed", Writers::listCompleted);
        all.put("writer-settings", Writers::set);
        all.put("batch-of-all", Writers::readAll);
    }

    private static List<String> read(Stage stage, String stream, int count) {
        stage.groups().createReaderGroup("group-" + stream, stage.on(stream));
        EventStreamReader<String> reader = stage.reader("reader-" + stream, "group-" + stream);
        return Stage.texts(stage.take(reader, count));
    }

    private static void writeTogether(Stage stage) throws Exception {
        stage.create("events", 1);
        EventWriterConfig config = EventWriterConfig.builder().enableConnectionPooling(true).build();
        try (EventStreamWriter<String> writer =
                 stage.clients().createEventWriter("writer", "events", Stage.TEXT, config)) {
            writer.writeEvents("key", List.of("one", "two", "three")).get(20, TimeUnit.SECONDS);
            writer.writeEvent("four").get(20, TimeUnit.SECONDS);
            stage.say("pooled", writer.getConfig().isEnableConnectionPooling());
            stage.tell("none at once", () -> writer.writeEvents("key", List.of()).get());
        }
        List<EventRead<String>> found = new ArrayList<>();
        stage.groups().createReaderGroup("group", stage.on("events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        found.addAll(stage.take(reader, 4));
        stage.say("read", Stage.texts(found));
        stage.say("of", found.get(0).getEventPointer().getStream().getScopedName());
        stage.say("places", stage.place(found.get(0)) + " " + stage.place(found.get(3)));
    }

    private static void writeLarge(Stage stage) throws Exception {
        stage.create("events", 1);
        String large = "x".repeat(9_000_000);
        EventWriterConfig config = EventWriterConfig.builder().enableLargeEvents(true).build();
        try (EventStreamWriter<String> writer =
                 stage.clients().createEventWriter("events", Stage.TEXT, config)) {
            writer.writeEvent("key", "before").get(20, TimeUnit.SECONDS);
            writer.writeEvent("key", large).get(60, TimeUnit.SECONDS);
            writer.writeEvent("key", "after").get(20, TimeUnit.SECONDS);
        }
        List<String> sizes = new ArrayList<>();
        read(stage, "events", 3).forEach(each -> sizes.add(String.valueOf(each.length())));
        stage.say("sizes", sizes);
        try (EventStreamWriter<String> writer = stage.writer("events")) {
            stage.tell("too large for a plain writer", () -> writer.writeEvent("key", large).get());
        }
    }

    private static TransactionalEventStreamWriter<String> transactional(Stage stage, String stream) {
        return stage.keep(stage.clients().createTransactionalEventWriter(
            stream, Stage.TEXT, EventWriterConfig.builder().transactionTimeoutTime(30_000).build()));
    }

    private static Transaction.Status settled(Transaction<String> transaction) throws Exception {
        for (int tries = 0; tries < 200; tries++) {
            Transaction.Status now = transaction.checkStatus();
            if (now == Transaction.Status.COMMITTED || now == Transaction.Status.ABORTED) {
                return now;
            }
            Thread.sleep(50);
        }
        return transaction.checkStatus();
    }

    private static void transact(Stage stage) throws Exception {
        stage.create("events", 2);
        TransactionalEventStreamWriter<String> writer = transactional(stage, "events");
        stage.say("lease", writer.getConfig().getTransactionTimeoutTime());
        Transaction<String> one = writer.beginTxn();
        one.writeEvent("key", "one");
        one.writeEvent("key", "two");
        one.flush();
        stage.say("open", one.checkStatus());
        UUID id = one.getTxnId();
        Transaction<String> same = writer.getTxn(id);
        stage.say("the same", same.getTxnId().equals(id));
        same.writeEvent("key", "three");
        same.flush();
        one.commit(1_000L);
        stage.say("committed", settled(one));
        Transaction<String> two = writer.beginTxn();
        two.writeEvent("never");
        two.abort();
        stage.say("aborted", settled(two));
        Transaction<String> three = writer.beginTxn();
        three.commit();
        stage.say("empty", settled(three));
        stage.write("events", 1, 0, 1);
        stage.say("read", new TreeSet<>(read(stage, "events", 4)));
    }

    private static void transactWrongly(Stage stage) throws Exception {
        stage.create("events", 1);
        TransactionalEventStreamWriter<String> writer = transactional(stage, "events");
        Transaction<String> committed = writer.beginTxn();
        committed.writeEvent("key", "one");
        committed.commit();
        settled(committed);
        stage.tell("write behind the commit", () -> {
            committed.writeEvent("key", "late");
            return "written";
        });
        stage.tell("commit again", () -> {
            committed.commit();
            return committed.checkStatus();
        });
        Transaction<String> aborted = writer.beginTxn();
        aborted.abort();
        settled(aborted);
        stage.tell("commit what was aborted", () -> {
            aborted.commit();
            return aborted.checkStatus();
        });
        stage.tell("a missing one", () -> writer.getTxn(UUID.randomUUID()).checkStatus());
        stage.tell("of a missing stream", () -> transactional(stage, "missing").beginTxn().checkStatus());
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("of a sealed stream", () -> writer.beginTxn().checkStatus());
    }

    private static void listCompleted(Stage stage) throws Exception {
        stage.create("events", 1);
        TransactionalEventStreamWriter<String> writer = transactional(stage, "events");
        Transaction<String> committed = writer.beginTxn();
        committed.commit();
        settled(committed);
        Transaction<String> aborted = writer.beginTxn();
        aborted.abort();
        settled(aborted);
        writer.beginTxn();
        StreamManager streams = stage.streams();
        List<TransactionInfo> completed = List.of();
        for (int tries = 0; tries < 100 && completed.size() < 2; tries++) {
            Thread.sleep(100);  // Pravega lists them a while later
            completed = streams.listCompletedTransactions(stage.stream("events"));
        }
        List<String> found = new ArrayList<>();
        for (TransactionInfo each : completed) {
            String which = each.getTransactionId().equals(committed.getTxnId()) ? "first"
                : each.getTransactionId().equals(aborted.getTxnId()) ? "second" : "another";
            found.add(which + " " + each.getTransactionStatus() + " " + each.getStream().getStreamName());
        }
        stage.say("completed", new TreeSet<>(found));
    }

    private static void set(Stage stage) throws Exception {
        EventWriterConfig config = EventWriterConfig.builder()
            .automaticallyNoteTime(true)
            .backoffMultiple(3)
            .enableConnectionPooling(false)
            .enableLargeEvents(true)
            .initialBackoffMillis(7)
            .maxBackoffMillis(70)
            .retryAttempts(5)
            .transactionTimeoutTime(12_345)
            .build();
        EventWriterConfig read = EventWriterConfig.fromBytes(config.toBytes());
        stage.say("times", read.isAutomaticallyNoteTime() + " " + read.getTransactionTimeoutTime());
        stage.say("backoff", read.getInitialBackoffMillis() + " " + read.getBackoffMultiple()
            + " " + read.getMaxBackoffMillis() + " " + read.getRetryAttempts());
        stage.say("kinds", read.isEnableConnectionPooling() + " " + read.isEnableLargeEvents());
    }

    private static void readAll(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 2, 0, 5);
        BatchClientFactory batch = stage.batch();
        StreamSegmentsIterator all = batch.getSegments(
            stage.stream("events"), StreamCut.UNBOUNDED, StreamCut.UNBOUNDED);
        all.getIterator().forEachRemaining(range -> {
            stage.say("range", range.getScope().equals(stage.scope) + " " + range.getStreamName()
                + " " + range.getSegmentId() + " " + range.getStartOffset() + " to " + range.getEndOffset());
            List<String> events = new ArrayList<>();
            try (SegmentIterator<String> found = batch.readSegment(range, Stage.TEXT)) {
                stage.say("begin", found.getOffset());
                found.forEachRemaining(events::add);
                stage.say("end", found.getOffset());
            }
            stage.say("events", events);
        });
        batch.close();
    }
}
