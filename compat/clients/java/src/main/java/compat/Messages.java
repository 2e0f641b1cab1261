package compat;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** The bodies that all clients send, and what is told of those that were read. */
final class Messages {

  private Messages() {}

  /** The body of message i of a mark. */
  static byte[] body(String mark, int i) {
    var body = new ByteArrayOutputStream();
    body.writeBytes((mark + i + "-").getBytes(StandardCharsets.US_ASCII));
    for (int k = 0; k < (i * 7) % 90; k++) {
      body.write((i + k) % 256);
    }
    return body.toByteArray();
  }

  static byte[] body(int i) {
    return body("m", i);
  }

  /** The body of n bytes that the scenario "large" sends. */
  static byte[] bodyOfSize(int n) {
    var body = new byte[n];
    for (int k = 0; k < n; k++) {
      body[k] = (byte) ((n + k) % 256);
    }
    return body;
  }

  /** Which message a body is; a fault if it is not, byte for byte, one of that mark. */
  static int number(String mark, byte[] body) {
    var text = new String(body, StandardCharsets.ISO_8859_1);
    var end = text.indexOf('-');
    if (end > mark.length() && text.startsWith(mark)) {
      var i = Integer.parseInt(text.substring(mark.length(), end));
      if (Arrays.equals(body, body(mark, i))) {
        return i;
      }
    }
    throw new IllegalStateException(
        "not a message of mark " + mark + ": " + HexFormat.of().formatHex(body));
  }

  static int number(byte[] body) {
    return number("m", body);
  }

  static List<Integer> numbers(List<Inbox.Delivery> arrived) {
    return arrived.stream().map(each -> number(each.body())).toList();
  }

  static List<Long> offsets(List<Inbox.Delivery> arrived) {
    return arrived.stream().map(Inbox.Delivery::offset).toList();
  }

  /** A count and one hash over all bodies in order of arrival. */
  static Map<String, ?> summary(List<Inbox.Delivery> arrived) {
    try {
      var hash = MessageDigest.getInstance("SHA-256");
      for (var each : arrived) {
        hash.update(ByteBuffer.allocate(4).putInt(each.body().length).array());
        hash.update(each.body());
      }
      return Map.of("count", arrived.size(), "sha256", HexFormat.of().formatHex(hash.digest()));
    } catch (NoSuchAlgorithmException fault) {
      throw new IllegalStateException(fault);
    }
  }
}
