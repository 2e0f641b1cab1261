import static java.util.stream.Collectors.joining;

import io.pravega.client.tables.Insert;
import io.pravega.client.tables.IteratorItem;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableIterator;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.Remove;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import io.pravega.client.tables.TableModification;
import io.pravega.client.tables.Version;
import io.pravega.common.util.AsyncIterator;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/** What tables do, step by step; nothing is printed that a server may choose. */
final class Scenes {
    private static final int VALUE_BYTES_MAX = 1024 * 1024 - 8 * 1024;

    private final Tables tables;

    Scenes(Tables tables) {
        this.tables = tables;
    }

    void play() throws Exception {
        manage();
        change();
        changeTogether();
        iterate();
        keepSizes();
        makeAgain();
        deleteScopes();
    }

    private void manage() {
        say("manage: create without a scope", () -> tables.create("t", 1, 4, 0));
        say("manage: list without a scope", tables::list);
        say("manage: delete without a scope", () -> tables.delete("t"));
        say("manage: scope", tables::createScope);
        say("manage: list none", tables::list);
        say("manage: create", () -> tables.create("managed", 3, 4, 2));
        say("manage: create again", () -> tables.create("managed", 3, 4, 2));
        say("manage: create otherwise", () -> tables.create("managed", 1, 8, 0));
        say("manage: name", () -> tables.create("_managed", 1, 4, 0));
        say("manage: long name", () -> tables.create("n".repeat(250), 1, 4, 0));
        say("manage: longer name", () -> tables.create("n".repeat(251), 1, 4, 0));
        say("manage: delete long name", () -> tables.delete("n".repeat(250)));
        say("manage: no partitions", () -> tables.create("none", 0, 4, 0));
        say("manage: other", () -> tables.create("a-1.b", 2, 1, 0));
        say("manage: list", tables::list);
        say("manage: open a missing one", () -> tables.open("missing"));
        say("manage: delete", () -> tables.delete("a-1.b"));
        say("manage: delete again", () -> tables.delete("a-1.b"));
        say("manage: list the rest", tables::list);
    }

    private void change() {
        tables.create("changed", 2, 4, 2);
        KeyValueTable table = tables.open("changed");
        TableKey key = Tables.key("aaaa01");
        TableKey other = Tables.key("aaaa02");
        say("change: get none", () -> value(table, key));
        say("change: exists not", () -> table.exists(key).get());
        Version[] versions = new Version[4];
        say("change: insert", () -> (versions[0] = insert(table, key, "one")) != null);
        say("change: insert again", () -> insert(table, key, "two"));
        say("change: exists", () -> table.exists(key).get());
        say("change: get", () -> value(table, key));
        say("change: version", () -> table.get(key).get().getVersion().equals(versions[0]));
        say("change: put", () -> (versions[1] = put(table, key, "three", null)) != null);
        say("change: other version", () -> !versions[1].equals(versions[0]));
        say("change: put with the old version", () -> put(table, key, "four", versions[0]));
        say("change: put with the version",
            () -> (versions[2] = put(table, key, "five", versions[1])) != null);
        say("change: put another with a version", () -> put(table, other, "six", versions[2]));
        say("change: put another where none is",
            () -> put(table, other, "six", Version.NOT_EXISTS) != null);
        say("change: put whatever there is",
            () -> put(table, other, "seven", Version.NO_VERSION) != null);
        say("change: get both", () -> values(table, key, other, Tables.key("zzzz99"), key));
        say("change: remove with the old version", () -> remove(table, key, versions[1]));
        say("change: remove with the version", () -> remove(table, key, versions[2]));
        say("change: remove what is gone", () -> remove(table, key, null));
        say("change: remove what is gone with its version", () -> remove(table, key, versions[2]));
        say("change: put what is gone with its version", () -> put(table, key, "no", versions[2]));
        say("change: get what is gone", () -> value(table, key));
        say("change: insert what is gone", () -> insert(table, key, "again") != null);
        say("change: empty value", () -> put(table, key, "", null) != null);
        say("change: get empty value", () -> value(table, key) + "|");
        say("change: a short key", () -> put(table, Tables.key("aaaa1"), "x", null));
        say("change: a long key", () -> put(table, Tables.key("aaaa123"), "x", null));
        say("change: a key without its second", () -> put(table, Tables.key("aaaa"), "x", null));
        say("change: close", () -> {
            table.close();
            return value(table, key);
        });
    }

    private void changeTogether() {
        tables.create("together", 2, 4, 2);
        KeyValueTable table = tables.open("together");
        TableKey[] keys = {Tables.key("aaaa01"), Tables.key("aaaa02"), Tables.key("aaaa03")};
        say("together: nothing", () -> update(table));
        say("together: insert", () -> update(table, new Insert(keys[0], Tables.bytes("1")),
            new Insert(keys[1], Tables.bytes("2"))));
        say("together: one is there", () -> update(table, new Put(keys[0], Tables.bytes("x")),
            new Insert(keys[2], Tables.bytes("x")), new Insert(keys[1], Tables.bytes("x"))));
        say("together: none was set", () -> values(table, keys));
        say("together: versions", () -> {
            List<TableEntry> found = table.getAll(Arrays.asList(keys)).get();
            return update(table,
                new Put(keys[0], Tables.bytes("3"), found.get(0).getVersion()),
                new Put(keys[1], Tables.bytes("4"), found.get(1).getVersion()),
                new Insert(keys[2], Tables.bytes("5")));
        });
        say("together: all were set", () -> values(table, keys));
        say("together: two first keys", () -> update(table, new Put(keys[0], Tables.bytes("x")),
            new Put(Tables.key("bbbb01"), Tables.bytes("x"))));
        say("together: put and remove", () -> update(table, new Put(keys[0], Tables.bytes("x")),
            new Remove(keys[1])));
        say("together: one key twice", () -> update(table, new Put(keys[0], Tables.bytes("6")),
            new Put(keys[0], Tables.bytes("7"))));
        say("together: after one key twice", () -> values(table, keys));
        say("together: remove, one with a wrong version", () -> update(table,
            new Remove(keys[0]), new Remove(keys[1], Version.NOT_EXISTS)));
        say("together: none was removed", () -> values(table, keys));
        say("together: remove, one missing", () -> update(table,
            new Remove(keys[0]), new Remove(Tables.key("aaaa09"))));
        say("together: the rest", () -> values(table, keys));
    }

    private void iterate() throws Exception {
        tables.create("iterated", 3, 4, 2);
        KeyValueTable table = tables.open("iterated");
        say("iterate: nothing", () -> keys(table, 3, KeyValueTableIterator.Builder::all));
        for (String primary : List.of("bbbb", "aaaa", "cccc", "\u00ff\u00ff\u00ff\u00ff", "\0\0\0\0", "ccdd")) {
            List<TableModification> changes = new ArrayList<>();
            for (String secondary : List.of("09", "01", "\u0080\0", "05", "\u00ff\u00ff", "\0\0", "10")) {
                changes.add(new Put(Tables.key(primary + secondary), Tables.bytes(secondary)));
            }
            table.update(changes).get();
        }
        for (int size : new int[] {1, 4, 7, 100}) {
            say("iterate: all by " + size,
                () -> keys(table, size, KeyValueTableIterator.Builder::all));
        }
        ByteBuffer first = Tables.bytes("bbbb");
        say("iterate: first key", () -> keys(table, 3, b -> b.forPrimaryKey(first)));
        say("iterate: missing first key",
            () -> keys(table, 3, b -> b.forPrimaryKey(Tables.bytes("none"))));
        say("iterate: second keys from to", () -> keys(table, 2,
            b -> b.forPrimaryKey(first, Tables.bytes("05"), Tables.bytes("10"))));
        say("iterate: second keys from", () -> keys(table, 2,
            b -> b.forPrimaryKey(first, Tables.bytes("06"), null)));
        say("iterate: second keys to", () -> keys(table, 2,
            b -> b.forPrimaryKey(first, null, Tables.bytes("08"))));
        say("iterate: second keys the wrong way", () -> keys(table, 2,
            b -> b.forPrimaryKey(first, Tables.bytes("10"), Tables.bytes("05"))));
        say("iterate: second keys that begin so", () -> keys(table, 2,
            b -> b.forPrimaryKey(first, Tables.bytes("0"))));
        say("iterate: range", () -> keys(table, 5,
            b -> b.forRange(Tables.bytes("aaab"), Tables.bytes("cccc"))));
        say("iterate: range of one", () -> keys(table, 5, b -> b.forRange(first, first)));
        say("iterate: range from", () -> keys(table, 5, b -> b.forRange(Tables.bytes("cccd"), null)));
        say("iterate: range to", () -> keys(table, 5, b -> b.forRange(null, Tables.bytes("aaaa"))));
        say("iterate: range the wrong way", () -> keys(table, 5,
            b -> b.forRange(Tables.bytes("cccc"), Tables.bytes("aaaa"))));
        say("iterate: first keys that begin so",
            () -> keys(table, 5, b -> b.forPrefix(Tables.bytes("cc"))));
        say("iterate: a long first key", () -> keys(table, 5, b -> b.forPrimaryKey(Tables.bytes("bbbbb"))));
        say("iterate: entries", () -> {
            List<String> found = new ArrayList<>();
            boolean[] same = {true};
            AsyncIterator<IteratorItem<TableEntry>> items =
                table.iterator().maxIterationSize(4).forPrefix(Tables.bytes("cc")).entries();
            for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
                for (TableEntry each : item.getItems()) {
                    found.add(name(each.getKey()) + "=" + printable(Tables.text(each.getValue())));
                    TableEntry now = table.get(each.getKey()).get();
                    same[0] &= now.getVersion().equals(each.getVersion());
                }
            }
            return found + " " + same[0];
        });
        say("iterate: while all is removed", () -> {
            int count = 0;
            AsyncIterator<IteratorItem<TableKey>> items =
                table.iterator().maxIterationSize(5).all().keys();
            for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
                for (TableKey each : item.getItems()) {
                    table.update(new Remove(each)).get();
                    count++;
                }
            }
            return count;
        });
        say("iterate: nothing is left", () -> keys(table, 3, KeyValueTableIterator.Builder::all));
    }

    private void keepSizes() {
        say("sizes: one key", () -> tables.create("one", 1, 4, 0));
        KeyValueTable one = tables.open("one");
        say("sizes: put", () -> put(one, Tables.key("aaaa"), "x", null) != null);
        say("sizes: two keys", () -> put(one, Tables.key("aaaa01"), "x", null) != null);
        say("sizes: get", () -> value(one, Tables.key("aaaa")));
        say("sizes: iterate", () -> keys(one, 3, b -> b.forPrimaryKey(Tables.bytes("aaaa"))));
        for (int size : new int[] {VALUE_BYTES_MAX, VALUE_BYTES_MAX + 1}) {
            String value = "v".repeat(size);
            say("sizes: a value of " + size, () -> put(one, Tables.key("bbbb"), value, null) != null);
        }
        say("sizes: get what is large", () -> value(one, Tables.key("bbbb")).length());
        say("sizes: a hundred large ones", () -> {
            String value = "w".repeat(100 * 1024);
            List<TableKey> keys = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                keys.add(Tables.key(String.format("%04d", number)));
                put(one, keys.get(number), value, null);
            }
            long size = 0;
            for (TableEntry each : one.getAll(keys).get()) {
                size += each.getValue().remaining();
            }
            int count = 0;
            var items = one.iterator().maxIterationSize(60).all().entries();
            for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
                count += item.getItems().size();
            }
            return size + " " + count;
        });
        say("sizes: long keys", () -> tables.create("long", 1, 200, 56));
        KeyValueTable wide = tables.open("long");
        TableKey key = new TableKey(Tables.bytes("p".repeat(200)), Tables.bytes("s".repeat(56)));
        say("sizes: put long keys", () -> put(wide, key, "x", null) != null);
        say("sizes: iterate long keys",
            () -> keys(wide, 3, KeyValueTableIterator.Builder::all).length());
        say("sizes: short keys", () -> tables.create("short", 4, 1, 0));
        KeyValueTable narrow = tables.open("short");
        say("sizes: all short keys", () -> {
            for (int each = 0; each < 256; each++) {
                narrow.update(new Put(new TableKey(ByteBuffer.wrap(new byte[] {(byte) each})),
                    Tables.bytes("x"))).get();
            }
            return keys(narrow, 256, KeyValueTableIterator.Builder::all);
        });
    }

    private void makeAgain() {
        TableKey key = Tables.key("aaaa01");
        tables.create("again", 2, 4, 2);
        KeyValueTable before = tables.open("again");
        say("again: put", () -> put(before, key, "before", null) != null);
        say("again: delete", () -> tables.delete("again"));
        say("again: open", () -> tables.open("again"));
        say("again: create", () -> tables.create("again", 2, 4, 2));
        KeyValueTable after = tables.open("again");
        say("again: put by the old parts", () -> put(before, key, "lost", null));
        say("again: get by the old parts", () -> value(before, key));
        say("again: it is empty", () -> keys(after, 3, KeyValueTableIterator.Builder::all));
        say("again: put after", () -> put(after, key, "after", null) != null);
        say("again: get after", () -> value(after, key));
    }

    private void deleteScopes() {
        say("scope: with tables", () -> tables.deleteScope(false));
        say("scope: list", () -> tables.list().size());
        say("scope: with all that it has", () -> tables.deleteScope(true));
        say("scope: list again", tables::list);
        say("scope: make again", tables::createScope);
        say("scope: nothing is in it", tables::list);
        say("scope: create", () -> tables.create("again", 2, 4, 2));
        say("scope: it is empty",
            () -> keys(tables.open("again"), 3, KeyValueTableIterator.Builder::all));
        say("scope: delete the table", () -> tables.delete("again"));
        say("scope: without tables", () -> tables.deleteScope(false));
    }

    /** Set many keys, a hundred at a time; iterate over them, then again while they are removed. */
    void many(int count) throws Exception {
        tables.createScope();
        say("many: create", () -> tables.create("many", 4, 4, 2));
        KeyValueTable table = tables.open("many");
        List<java.util.concurrent.CompletableFuture<?>> left = new ArrayList<>();
        for (int number = 0; number < count; number += 100) {
            List<TableModification> changes = new ArrayList<>();
            for (int each = 0; each < 100; each++) {
                String key = String.format("%04d%02d", number / 100, each);
                changes.add(new Insert(Tables.key(key), Tables.bytes("value of " + key)));
            }
            left.add(table.update(changes));
            if (left.size() == 50) {
                for (var each : left) {
                    each.get();
                }
                left.clear();
            }
        }
        for (var each : left) {
            each.get();
        }
        say("many: keys", () -> sum(table, 1000, false));
        say("many: entries", () -> sum(table, 333, true));
        say("many: while each second is removed", () -> sum(table, 500, null));
        say("many: the rest", () -> sum(table, 1000, false));
        say("many: delete", () -> tables.delete("many"));
    }

    /** Iterate; give the count, whether keys came in order, and a checksum. */
    private String sum(KeyValueTable table, int size, Boolean entries) throws Exception {
        long count = 0;
        long checksum = 0;
        boolean ordered = true;
        String last = "";
        KeyValueTableIterator all = table.iterator().maxIterationSize(size).all();
        if (Boolean.TRUE.equals(entries)) {
            var items = all.entries();
            for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
                for (TableEntry each : item.getItems()) {
                    count++;
                    checksum += Tables.text(each.getValue()).hashCode();
                }
            }
            return count + " " + checksum;
        }
        var items = all.keys();
        for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
            List<java.util.concurrent.CompletableFuture<Version>> left = new ArrayList<>();
            for (TableKey each : item.getItems()) {
                String name = name(each);
                ordered &= last.compareTo(name) < 0;
                last = name;
                checksum += name.hashCode();
                if (entries == null && count % 2 == 0) {
                    left.add(table.update(new Remove(each)));
                }
                count++;
            }
            for (var each : left) {
                each.get();
            }
        }
        return count + " " + ordered + " " + checksum;
    }

    // Steps

    private void say(String step, java.util.concurrent.Callable<?> work) {
        tables.say(step, work);
    }

    private static Version insert(KeyValueTable table, TableKey key, String value) throws Exception {
        return table.update(new Insert(key, Tables.bytes(value))).get();
    }

    private static Version put(KeyValueTable table, TableKey key, String value, Version version)
            throws Exception {
        return table.update(version == null
            ? new Put(key, Tables.bytes(value))
            : new Put(key, Tables.bytes(value), version)).get();
    }

    private static Version remove(KeyValueTable table, TableKey key, Version version)
            throws Exception {
        return table.update(version == null ? new Remove(key) : new Remove(key, version)).get();
    }

    private static int update(KeyValueTable table, TableModification... changes) throws Exception {
        return table.update(Arrays.asList(changes)).get().size();
    }

    private static String value(KeyValueTable table, TableKey key) throws Exception {
        TableEntry entry = table.get(key).get();
        return entry == null ? "none" : Tables.text(entry.getValue());
    }

    private static String values(KeyValueTable table, TableKey... keys) throws Exception {
        return table.getAll(Arrays.asList(keys)).get().stream()
            .map(each -> each == null ? "none" : Tables.text(each.getValue()))
            .collect(joining(" "));
    }

    /** Give the keys of an iteration. How many come together is left to the server. */
    private static String keys(KeyValueTable table, int size,
            Function<KeyValueTableIterator.Builder, KeyValueTableIterator> bounds) throws Exception {
        List<String> parts = new ArrayList<>();
        AsyncIterator<IteratorItem<TableKey>> items =
            bounds.apply(table.iterator().maxIterationSize(size)).keys();
        for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
            parts.add(item.getItems().stream().map(Scenes::name).collect(joining(" ")));
        }
        return String.join(" ", parts);
    }

    private static String name(TableKey key) {
        String secondary = Objects.requireNonNullElse(key.getSecondaryKey(), ByteBuffer.allocate(0))
            .hasRemaining() ? ":" + printable(Tables.text(key.getSecondaryKey())) : "";
        return printable(Tables.text(key.getPrimaryKey())) + secondary;
    }

    private static String printable(String text) {
        return text.chars()
            .mapToObj(each -> each > 32 && each < 127
                ? String.valueOf((char) each) : String.format("<%02x>", each))
            .collect(joining());
    }
}
