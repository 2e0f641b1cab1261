package main

import (
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func offsetFirst(r *run) (result, error) {
	return readFrom(r, stream.OffsetSpecification{}.First(), 20)
}

func offsetLast(r *run) (result, error) {
	return readFrom(r, stream.OffsetSpecification{}.Last(), 1)
}

func offsetAbsolute(r *run) (result, error) {
	return readFrom(r, stream.OffsetSpecification{}.Offset(5), 15)
}

// readFrom publishes, then reads from an offset on what is there.
func readFrom(r *run, offset stream.OffsetSpecification, count int) (result, error) {
	producer, err := publishThrice(r, func() {})
	if err != nil {
		return nil, err
	}
	return readRest(r, producer, offset, count)
}

func offsetTimestamp(r *run) (result, error) {
	var between time.Time
	producer, err := publishThrice(r, func() {
		settle()
		between = time.Now()
		settle()
	})
	if err != nil {
		return nil, err
	}
	return readRest(r, producer, stream.OffsetSpecification{}.Timestamp(between.UnixMilli()), 10)
}

func offsetNext(r *run) (result, error) {
	return readComing(r, stream.OffsetSpecification{}.Next(), 10)
}

func offsetBeyond(r *run) (result, error) {
	return readComing(r, stream.OffsetSpecification{}.Offset(21), 9)
}

func offsetFuture(r *run) (result, error) {
	later := time.Now().Add(time.Hour)
	return readComing(r, stream.OffsetSpecification{}.Timestamp(later.UnixMilli()), 10)
}

// publisherIn is a publisher and the environment it belongs to.
type publisherIn struct {
	*publisher
	environment *stream.Environment
}

// publishThrice sends messages 0-9, 10-18 and 19, with something done behind the first.
func publishThrice(r *run, afterFirst func()) (publisherIn, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return publisherIn{}, err
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return publisherIn{}, err
	}
	if err := producer.sendAll(0, 10); err != nil {
		return publisherIn{}, err
	}
	afterFirst()
	if err := producer.sendAll(10, 19); err != nil {
		return publisherIn{}, err
	}
	return publisherIn{producer, environment}, producer.sendAll(19, 20)
}

func readRest(
	r *run, producer publisherIn, offset stream.OffsetSpecification, count int,
) (result, error) {
	in, _, err := consume(producer.environment, r.stream, from(offset))
	if err != nil {
		return nil, err
	}
	numbers, err := in.readNumbers(count)
	return result{"read": numbers}, err
}

// readComing subscribes behind all that is there, and reads what is published then.
func readComing(r *run, offset stream.OffsetSpecification, count int) (result, error) {
	producer, err := publishThrice(r, func() {})
	if err != nil {
		return nil, err
	}
	in, _, err := consume(producer.environment, r.stream, from(offset))
	if err != nil {
		return nil, err
	}
	settle()
	if err := producer.sendAll(20, 30); err != nil {
		return nil, err
	}
	numbers, err := in.readNumbers(count)
	return result{"read": numbers}, err
}
