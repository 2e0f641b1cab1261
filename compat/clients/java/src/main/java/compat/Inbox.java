package compat;

import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.MessageHandler;
import java.util.ArrayList;
import java.util.List;

/** Keeps what consumers were given, in order of arrival. */
final class Inbox implements MessageHandler {

  /** One message, and where it came from. */
  record Delivery(Context context, byte[] body) {
    String stream() {
      return context.stream();
    }

    long offset() {
      return context.offset();
    }
  }

  private final List<Delivery> arrived = new ArrayList<>();

  @Override
  public synchronized void handle(Context context, Message message) {
    arrived.add(new Delivery(context, message.getBodyAsBinary()));
  }

  synchronized List<Delivery> all() {
    return List.copyOf(arrived);
  }

  /** Returns when so many messages are there, without waiting for more. */
  void await(int count) {
    Run.until(count + " messages", () -> all().size() >= count);
  }

  /** Returns so many messages, and any that come although they should not. */
  List<Delivery> read(int count) {
    await(count);
    Run.waitForExcess();
    return all();
  }

  /** Reads like read, and tells which messages they are. */
  List<Integer> readNumbers(int count) {
    return Messages.numbers(read(count));
  }
}
