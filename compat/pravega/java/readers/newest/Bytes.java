import io.pravega.client.ByteStreamClientFactory;
import io.pravega.client.byteStream.ByteStreamReader;
import io.pravega.client.byteStream.ByteStreamWriter;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Streams of bytes: written, read from any place, waited for, truncated and sealed. */
final class Bytes {
    static void add(Map<String, Run.Scenario> all) {
        all.put("bytes", Bytes::writeAndRead);
        all.put("bytes-awaited", Bytes::await);
        all.put("bytes-truncated", Bytes::truncate);
        all.put("bytes-of-two-writers", Bytes::writeByTwo);
    }

    private static ByteStreamClientFactory clients(Stage stage) {
        return stage.keep(ByteStreamClientFactory.withScope(stage.scope, stage.config));
    }

    private static String text(byte[] bytes, int count) {
        return count < 0 ? String.valueOf(count) : new String(bytes, 0, count);
    }

    private static void writeAndRead(Stage stage) throws Exception {
        stage.create("bytes", 1);
        ByteStreamClientFactory clients = clients(stage);
        try (ByteStreamWriter writer = clients.createByteStreamWriter("bytes")) {
            writer.write("0123456789".getBytes());
            writer.write("abcdefghij".getBytes(), 2, 5);
            writer.write(ByteBuffer.wrap("XYZ".getBytes()));
            writer.flushAsync().get(20, TimeUnit.SECONDS);
            stage.say("head", writer.fetchHeadOffset());
            stage.say("tail", writer.fetchTailOffset());
        }
        byte[] room = new byte[100];
        try (ByteStreamReader reader = clients.createByteStreamReader("bytes")) {
            stage.say("offset", reader.getOffset());
            stage.say("first", reader.read());
            stage.say("five", text(room, reader.read(room, 0, 5)));
            stage.say("offset then", reader.getOffset());
            stage.say("skipped", reader.skip(3));
            ByteBuffer buffer = ByteBuffer.allocate(4);
            stage.say("into a buffer", reader.read(buffer) + " " + text(buffer.array(), 4));
            reader.seekToOffset(15);
            stage.say("from 15", text(room, reader.read(room)));
            stage.say("ends", reader.fetchHeadOffset() + " to " + reader.fetchTailOffset());
            reader.seekToOffset(5);
            reader.read();
            stage.say("available at 6", reader.available() >= 0);
            stage.tell("skip beyond the end", () -> reader.skip(1_000));
        }
        ByteStreamReader closed = clients.createByteStreamReader("bytes");
        closed.close();
        stage.say("open", closed.isOpen());
    }

    private static void await(Stage stage) throws Exception {
        stage.create("bytes", 1);
        ByteStreamClientFactory clients = clients(stage);
        byte[] room = new byte[100];
        try (ByteStreamReader reader = clients.createByteStreamReader("bytes");
             ByteStreamWriter writer = clients.createByteStreamWriter("bytes")) {
            CompletableFuture<Integer> available = reader.onDataAvailable();
            stage.say("before", available.isDone());
            writer.write("hello".getBytes());
            writer.flush();
            stage.say("then", available.get(20, TimeUnit.SECONDS) > 0);
            stage.say("read", text(room, reader.read(room)));
            writer.closeAndSeal();
            stage.say("at the end", text(room, reader.read(room)));
            stage.say("available at the end", reader.onDataAvailable().get(20, TimeUnit.SECONDS));
        }
        stage.tell("write to a sealed one", () -> {
            try (ByteStreamWriter late = clients.createByteStreamWriter("bytes")) {
                late.write("late".getBytes());
                late.flush();
            }
            return "written";
        });
    }

    private static void truncate(Stage stage) throws Exception {
        stage.create("bytes", 1);
        ByteStreamClientFactory clients = clients(stage);
        byte[] room = new byte[100];
        try (ByteStreamWriter writer = clients.createByteStreamWriter("bytes");
             ByteStreamReader reader = clients.createByteStreamReader("bytes")) {
            writer.write("0123456789".getBytes());
            writer.flush();
            writer.truncateDataBefore(4);
            stage.say("head", writer.fetchHeadOffset());
            stage.tell("read what has gone", () -> reader.read(room));
            reader.seekToOffset(4);
            stage.say("read on", text(room, reader.read(room)));
            stage.tell("truncate back", () -> {
                writer.truncateDataBefore(2);
                return writer.fetchHeadOffset();
            });
            stage.tell("truncate to the end", () -> {
                writer.truncateDataBefore(10);
                return writer.fetchHeadOffset();
            });
        }
    }

    private static void writeByTwo(Stage stage) throws Exception {
        stage.create("bytes", 1);
        stage.create("wide", 2);
        ByteStreamClientFactory clients = clients(stage);
        byte[] room = new byte[100];
        try (ByteStreamWriter one = clients.createByteStreamWriter("bytes");
             ByteStreamWriter two = clients.createByteStreamWriter("bytes");
             ByteStreamReader reader = clients.createByteStreamReader("bytes")) {
            one.write("one ".getBytes());
            one.flush();
            two.write("two ".getBytes());
            two.flush();
            one.write("three".getBytes());
            one.flush();
            int count = 0;
            while (count < 13) {
                count += reader.read(room, count, room.length - count);
            }
            stage.say("both", text(room, count));
        }
        stage.tell("of two segments", () -> clients.createByteStreamWriter("wide").fetchTailOffset());
        stage.tell("a missing one", () -> clients.createByteStreamReader("missing").read());
    }
}
