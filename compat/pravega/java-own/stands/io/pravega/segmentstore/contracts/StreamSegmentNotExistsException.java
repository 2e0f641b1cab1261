package io.pravega.segmentstore.contracts;

/** What Pravega's store says of a segment that is not there. */
public class StreamSegmentNotExistsException extends Exception {
}
