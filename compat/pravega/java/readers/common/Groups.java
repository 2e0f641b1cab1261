import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** Groups made, deleted and made again, their names, and the streams that are listed with them. */
final class Groups {
    static void add(Map<String, Run.Scenario> all) {
        all.put("group-twice", Groups::createTwice);
        all.put("group-missing", Groups::missOne);
        all.put("group-deleted", Groups::deleteAndCreate);
        all.put("group-deleted-while-read", Groups::deleteWhileRead);
        all.put("scope-with-group", Groups::deleteScope);
        all.put("group-names", Groups::nameGroups);
        all.put("stream-names", Groups::nameStreams);
        all.put("listed-streams", Groups::listStreams);
        all.put("group-of-missing-stream", Groups::createOnMissing);
    }

    private static String create(Stage stage, String group, String stream) {
        stage.groups().createReaderGroup(group, stage.on(stream));
        return "created";
    }

    private static String delete(Stage stage, String group) {
        stage.groups().deleteReaderGroup(group);
        return "deleted";
    }

    private static void createTwice(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 1);
        stage.write("events", 1, 0, 10);
        stage.write("others", 1, 10, 20);
        stage.tell("first", () -> create(stage, "group", "events"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 3)));
        reader.close();
        stage.tell("the same", () -> create(stage, "group", "events"));
        stage.tell("another stream", () -> create(stage, "group", "others"));
        stage.tell("another refresh time", () -> {
            stage.groups().createReaderGroup("group", stage.quick()
                .groupRefreshTimeMillis(300).stream(stage.stream("events")).build());
            return "created";
        });
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        stage.say("streams", group.getStreamNames());
        stage.say("goes on", Stage.texts(stage.take(stage.reader("reader", "group"), 2)));
    }

    private static void missOne(Stage stage) {
        stage.create("events", 1);
        stage.tell("get", () -> stage.groups().getReaderGroup("missing").getGroupName());
        stage.tell("delete", () -> delete(stage, "missing"));
        stage.tell("reader", () -> stage.reader("reader", "missing").getConfig());
        stage.tell("a missing scope", () -> {
            ReaderGroupManager groups =
                stage.keep(ReaderGroupManager.withScope(stage.scope + "-missing", stage.config));
            groups.createReaderGroup("group", stage.on("events"));
            return "created";
        });
        stage.tell("of another scope's stream", () -> {
            String other = stage.scope + "-other";
            stage.streams().createScope(other);
            ReaderGroupManager groups =
                stage.keep(ReaderGroupManager.withScope(other, stage.config));
            groups.createReaderGroup("group", stage.on("events"));
            return groups.getReaderGroup("group").getStreamNames();
        });
    }

    private static void deleteAndCreate(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        create(stage, "group", "events");
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 4)));
        reader.close();
        stage.tell("delete", () -> delete(stage, "group"));
        stage.tell("delete again", () -> delete(stage, "group"));
        stage.tell("get", () -> stage.groups().getReaderGroup("group").getGroupName());
        stage.tell("streams", () -> listed(stage, stage.scope));
        stage.tell("create", () -> create(stage, "group", "events"));
        stage.tell("from the start", () ->
            Stage.texts(stage.take(stage.reader("reader", "group"), 2)));
    }

    private static void deleteWhileRead(Stage stage) {
        stage.create("events", 1);
        stage.write("events", 1, 0, 10);
        create(stage, "group", "events");
        ReaderGroup group = stage.keep(stage.groups().getReaderGroup("group"));
        EventStreamReader<String> reader = stage.reader("reader", "group");
        stage.say("events", Stage.texts(stage.take(reader, 4)));
        stage.tell("delete", () -> delete(stage, "group"));
        stage.tell("read", () -> {
            for (int tries = 0; tries < Stage.TRIES; tries++) {
                reader.readNextEvent(500);
            }
            return "reads on";
        });
        stage.tell("online", () -> group.getOnlineReaders());
        stage.tell("close", () -> {
            reader.close();
            return "done";
        });
    }

    private static void deleteScope(Stage stage) {
        stage.create("events", 1);
        create(stage, "group", "events");
        stage.streams().sealStream(stage.scope, "events");
        stage.tell("delete the stream", () -> stage.streams().deleteStream(stage.scope, "events"));
        stage.tell("streams", () -> listed(stage, stage.scope));
        stage.tell("delete the scope", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("delete the group", () -> delete(stage, "group"));
        stage.tell("streams again", () -> listed(stage, stage.scope));
        stage.tell("delete the scope again", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("there", () -> stage.streams().checkScopeExists(stage.scope));
        stage.tell("a missing scope", () -> stage.streams().deleteScope(stage.scope));
        stage.tell("its streams", () -> listed(stage, stage.scope));
    }

    private static void nameGroups(Stage stage) {
        stage.create("events", 1);
        List<String> names = List.of("plain", "_before", "_RGgroup", "_MARKevents", "a.b", "a-b",
            "a b", "a/b", "a_b", "a#b", "Ä", "", "n".repeat(247), "n".repeat(248), "n".repeat(250),
            "n".repeat(251));
        for (String name : names) {
            stage.tell("group " + shown(name), () -> create(stage, name, "events"));
        }
        stage.tell("streams", () -> listed(stage, stage.scope).replaceAll("n{200,}", "n…"));
        stage.tell("delete", () -> delete(stage, "_before"));
    }

    private static void nameStreams(Stage stage) {
        stage.streams().createScope(stage.scope);
        List<String> names = List.of("plain", "_before", "_RGgroup", "_MARKevents", "a.b", "a-b",
            "a b", "a/b", "a_b", "a#b", "Ä", "", "n".repeat(249), "n".repeat(250), "n".repeat(251),
            "n".repeat(256));
        for (String name : names) {
            stage.tell("stream " + shown(name), () ->
                stage.streams().createStream(stage.scope, name, Stage.configOf(1)));
        }
        stage.tell("streams", () -> listed(stage, stage.scope).replaceAll("n{200,}", "n…"));
        for (String name : List.of("_system", "a/b", "a b", "Ä", "")) {
            stage.tell("scope " + shown(name), () -> stage.streams().createScope(name));
        }
        stage.tell("the same", () ->
            stage.streams().createStream(stage.scope, "plain", Stage.configOf(1)));
        stage.tell("in a missing scope", () ->
            stage.streams().createStream(stage.scope + "-missing", "plain", Stage.configOf(1)));
    }

    private static String shown(String text) {
        return Pattern.compile("n{200,}").matcher(text)
            .replaceAll(found -> "n*" + found.group().length())
            .replace(" ", "(space)").replaceAll("^$", "(empty)");
    }

    private static void listStreams(Stage stage) {
        stage.create("events", 1);
        stage.create("others", 2);
        stage.say("streams", listed(stage, stage.scope));
        create(stage, "group", "events");
        create(stage, "another", "others");
        stage.say("with groups", listed(stage, stage.scope));
        for (String name : List.of("events", "_MARKevents", "_RGgroup", "_RGmissing")) {
            stage.tell("there: " + name, () -> stage.streams().checkStreamExists(stage.scope, name));
            stage.tell("segments of " + name, () ->
                stage.controller().getCurrentSegments(stage.scope, name).get().getSegments().size());
        }
        stage.tell("seal of a mark", () -> stage.streams().sealStream(stage.scope, "_MARKevents"));
        stage.tell("delete of a mark", () ->
            stage.streams().deleteStream(stage.scope, "_MARKevents"));
        stage.streams().sealStream(stage.scope, "others");
        stage.tell("delete a stream", () -> stage.streams().deleteStream(stage.scope, "others"));
        delete(stage, "group");
        stage.say("left", listed(stage, stage.scope));
    }

    static String listed(Stage stage, String scope) {
        List<String> names = new ArrayList<>();
        for (Iterator<Stream> each = stage.streams().listStreams(scope); each.hasNext();) {
            names.add(each.next().getStreamName());
        }
        return new TreeSet<>(names) + (new TreeSet<>(names).size() < names.size() ? " twice" : "");
    }

    private static void createOnMissing(Stage stage) {
        stage.streams().createScope(stage.scope);
        stage.tell("create", () -> create(stage, "group", "missing"));
        stage.tell("streams", () -> listed(stage, stage.scope));
        stage.tell("get", () -> stage.groups().getReaderGroup("group").getStreamNames());
        stage.create("missing", 1);
        stage.tell("create again", () -> create(stage, "group", "missing"));
        stage.tell("get again", () -> stage.groups().getReaderGroup("group").getStreamNames());
    }
}
