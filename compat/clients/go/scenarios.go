package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func publish(r *run) (result, error) {
	return publishAndRead(r, 20, nil)
}

// publishAndRead sends so many messages over a connection of some kind and reads them over it.
func publishAndRead(
	r *run, count int, tune func(*stream.EnvironmentOptions),
) (result, error) {
	environment, err := r.openWithStream(tune)
	if err != nil {
		return nil, err
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	if err := producer.sendAll(0, count); err != nil {
		return nil, err
	}
	arrived, err := readStream(environment, r.stream, count)
	if err != nil {
		return nil, err
	}
	numbers, err := numbersOf(arrived)
	return result{
		"confirmed": producer.confirmed, "refused": producer.refused,
		"read": numbers, "offsets": offsetsOf(arrived),
	}, err
}

func batch(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	for first := 0; first < 1000; first += 100 {
		if err := producer.BatchSend(group("m", first, first+100)); err != nil {
			return nil, err
		}
	}
	if err := producer.wait(1000); err != nil {
		return nil, err
	}
	arrived, err := readStream(environment, r.stream, 1000)
	if err != nil {
		return nil, err
	}
	_, err = numbersOf(arrived)
	return result{
		"confirmed": producer.confirmed, "refused": producer.refused, "read": summaryOf(arrived),
	}, err
}

func large(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	sizes := []int{1, 127, 255, 256, 4095, 65535, 65536, 1000000}
	for i, size := range sizes {
		if err := producer.Send(amqp.NewMessage(bodyOfSize(size))); err != nil {
			return nil, err
		}
		if err := producer.wait(i + 1); err != nil {
			return nil, err
		}
	}
	arrived, err := readStream(environment, r.stream, len(sizes))
	if err != nil {
		return nil, err
	}
	found := []int{}
	for _, each := range arrived {
		if string(each.body) != string(bodyOfSize(len(each.body))) {
			return nil, fmt.Errorf("a wrong body of %d bytes", len(each.body))
		}
		found = append(found, len(each.body))
	}
	return result{
		"confirmed": producer.confirmed, "refused": producer.refused,
		"sizes": found, "read": summaryOf(arrived),
	}, nil
}

// codecOptions are those of a producer of sub-entries of ten messages; "plain" makes it an
// ordinary one.
func codecOptions(codec string) (*stream.ProducerOptions, error) {
	options := stream.NewProducerOptions()
	compression := map[string]stream.Compression{
		"none":   stream.Compression{}.None(),
		"gzip":   stream.Compression{}.Gzip(),
		"snappy": stream.Compression{}.Snappy(),
		"lz4":    stream.Compression{}.Lz4(),
		"zstd":   stream.Compression{}.Zstd(),
	}
	if codec == "plain" {
		return options, nil
	}
	if chosen, found := compression[codec]; found {
		return options.SetSubEntrySize(10).SetCompression(chosen), nil
	}
	return nil, fmt.Errorf("no codec %q", codec)
}

// sendGroups publishes messages in groups of ten, each confirmed before the next is sent.
func sendGroups(
	environment *stream.Environment, name, codec, mark string, count int,
) (*publisher, error) {
	options, err := codecOptions(codec)
	if err != nil {
		return nil, err
	}
	producer, err := newPublisher(environment, name, options)
	if err != nil {
		return nil, err
	}
	for first := 0; first < count; first += 10 {
		if err := producer.sendGroup(mark, first, min(first+10, count)); err != nil {
			return nil, err
		}
	}
	return producer, nil
}

func subEntries(codec string) func(*run) (result, error) {
	return func(r *run) (result, error) {
		environment, err := r.openWithStream(nil)
		if err != nil {
			return nil, err
		}
		producer, err := sendGroups(environment, r.stream, codec, "m", 100)
		if err != nil {
			return nil, err
		}
		arrived, err := readStream(environment, r.stream, 100)
		if err != nil {
			return nil, err
		}
		numbers, err := numbersOf(arrived)
		return result{
			"confirmed": producer.confirmed, "refused": producer.refused, "read": numbers,
		}, err
	}
}

func write(r *run) (result, error) {
	count, err := strconv.Atoi(r.values["count"])
	if err != nil {
		return nil, err
	}
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	producer, err := sendGroups(environment, r.stream, r.values["codec"], r.values["mark"], count)
	if err != nil {
		return nil, err
	}
	return result{"confirmed": producer.confirmed, "refused": producer.refused}, nil
}

func read(r *run) (result, error) {
	count, err := strconv.Atoi(r.values["count"])
	if err != nil {
		return nil, err
	}
	environment, err := r.open(nil)
	if err != nil {
		return nil, err
	}
	arrived, err := readStream(environment, r.stream, count)
	if err != nil {
		return nil, err
	}
	for _, each := range arrived {
		if _, err := numberOf(r.values["mark"], each.body); err != nil {
			return nil, err
		}
	}
	return result{"read": summaryOf(arrived)}, nil
}

func tracking(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	if err := producer.sendAll(0, 10); err != nil {
		return nil, err
	}
	found := result{"before": storedOffset(environment, "app", r.stream)}
	var stored []any
	for _, offset := range []int64{4, 7} {
		if err := store(environment, "app", r.stream, offset); err != nil {
			return nil, err
		}
		stored = append(stored, storedOffset(environment, "app", r.stream))
	}
	found["stored"] = stored
	found["other"] = storedOffset(environment, "other", r.stream)
	// The library leaves it to its user to begin behind what is stored.
	options := from(stream.OffsetSpecification{}.Offset(8)).SetConsumerName("app")
	in, _, err := consume(environment, r.stream, options)
	if err != nil {
		return nil, err
	}
	found["read"], err = in.readNumbers(2)
	return found, err
}

// storedOffset is the offset that the server keeps, "none", or the error's text.
func storedOffset(environment *stream.Environment, name, streamName string) any {
	offset, err := environment.QueryOffset(name, streamName)
	if errors.Is(err, stream.OffsetNotFoundError) {
		return "none"
	}
	if err != nil {
		return err.Error()
	}
	return offset
}

// store stores an offset and returns when the server tells it back: storing has no answer.
func store(environment *stream.Environment, name, streamName string, offset int64) error {
	if err := environment.StoreOffset(name, streamName, offset); err != nil {
		return err
	}
	return until(fmt.Sprintf("offset %d to be stored", offset), func() (bool, error) {
		return storedOffset(environment, name, streamName) == offset, nil
	})
}

func dedup(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	rounds := [][]struct{ first, next, id int }{
		{{0, 10, 1}, {106, 116, 6}},
		{{215, 217, 15}},
	}
	confirmed := []int{}
	last := []int64{}
	for round, parts := range rounds {
		options := stream.NewProducerOptions().SetProducerName("p")
		producer, err := newPublisher(environment, r.stream, options)
		if err != nil {
			return nil, err
		}
		ask := func() error {
			id, err := producer.GetLastPublishingId()
			last = append(last, id)
			return err
		}
		if round > 0 {
			if err := ask(); err != nil {
				return nil, err
			}
		}
		for _, part := range parts {
			before := producer.confirmed
			if err := sendWithIDs(producer, part.first, part.next, part.id); err != nil {
				return nil, err
			}
			confirmed = append(confirmed, producer.confirmed-before)
			if err := ask(); err != nil {
				return nil, err
			}
		}
		if err := producer.Close(); err != nil {
			return nil, err
		}
	}
	arrived, err := readStream(environment, r.stream, 16)
	if err != nil {
		return nil, err
	}
	numbers, err := numbersOf(arrived)
	return result{"confirmed": confirmed, "last": last, "read": numbers}, err
}

// sendWithIDs sends messages with publishing ids that count up from one.
func sendWithIDs(producer *publisher, first, next, id int) error {
	confirmed, _ := producer.answered()
	for i := first; i < next; i++ {
		message := amqp.NewMessage(bodyOf("m", i))
		message.SetPublishingId(int64(id + i - first))
		if err := producer.Send(message); err != nil {
			return err
		}
	}
	return producer.wait(confirmed + next - first)
}

func filter(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	valueOf := func(message message.StreamMessage) string {
		i, _ := numberOf("m", bytesOf(message.GetData()))
		return []string{"apple", "banana"}[i/10]
	}
	options := stream.NewProducerOptions().SetFilter(stream.NewProducerFilter(valueOf))
	producer, err := newPublisher(environment, r.stream, options)
	if err != nil {
		return nil, err
	}
	// An empty value makes the library write a broken frame, so what has none comes from a
	// producer that knows nothing of filters.
	unfiltered, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	for tens, sender := range []*publisher{producer, producer, unfiltered} {
		if err := sender.sendAll(tens*10, tens*10+10); err != nil {
			return nil, err
		}
	}
	found := result{"confirmed": producer.confirmed + unfiltered.confirmed}
	all := func(*amqp.Message) bool { return true }
	for _, each := range []struct {
		name       string
		values     []string
		unfiltered bool
		count      int
	}{
		{"banana", []string{"banana"}, false, 10},
		{"apple or banana", []string{"apple", "banana"}, false, 20},
		{"banana or none", []string{"banana"}, true, 20},
	} {
		options := from(stream.OffsetSpecification{}.First()).
			SetFilter(stream.NewConsumerFilter(each.values, each.unfiltered, all))
		in, _, err := consume(environment, r.stream, options)
		if err != nil {
			return nil, err
		}
		if found[each.name], err = in.readNumbers(each.count); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func tlsTrusted(r *run) (result, error) {
	secured, err := r.overTLS(r.ca, &tls.Config{})
	if err != nil {
		return nil, err
	}
	return publishAndRead(r, 20, secured)
}

func tlsDistrust(r *run) (result, error) {
	secured, err := r.overTLS(r.otherCA, &tls.Config{})
	if err != nil {
		return nil, err
	}
	_, err = r.open(secured)
	return result{"connected": err == nil}, nil
}

func tlsExternal(r *run) (result, error) {
	pair, err := tls.LoadX509KeyPair(r.certPath, r.keyPath)
	if err != nil {
		return nil, err
	}
	secured, err := r.overTLS(r.ca, &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	return publishAndRead(r, 5, func(options *stream.EnvironmentOptions) {
		secured(options)
		options.SetSaslConfiguration(stream.SaslConfigurationExternal)
	})
}

// codes is the scenario "errors". Creating a stream that exists with the same arguments is no
// error to this library: it reports success then.
func codes(r *run) (result, error) {
	environment, err := r.open(nil)
	if err != nil {
		return nil, err
	}
	missing := r.stream + "-x"
	plain := stream.NewStreamOptions()
	limited := stream.NewStreamOptions().SetMaxLengthBytes(stream.ByteCapacity{}.B(1_000_000))
	found := result{
		"create":    codeOf(environment.DeclareStream(r.stream, plain)),
		"again":     codeOf(environment.DeclareStream(r.stream, plain)),
		"otherwise": codeOf(environment.DeclareStream(r.stream, limited)),
	}
	_, err = environment.NewProducer(missing, stream.NewProducerOptions())
	found["publish_missing"] = codeOf(err)
	_, _, err = consume(environment, missing, stream.NewConsumerOptions())
	found["read_missing"] = codeOf(err)
	found["delete_missing"] = codeOf(environment.DeleteStream(missing))
	found["delete"] = codeOf(environment.DeleteStream(r.stream))
	_, err = r.open(func(options *stream.EnvironmentOptions) { options.SetPassword("wrong") })
	found["password"] = codeOf(err)
	_, err = r.open(func(options *stream.EnvironmentOptions) { options.SetVHost("nowhere") })
	found["vhost"] = codeOf(err)
	return found, nil
}

// codeOf is the number behind an error: the library makes each of these of one code.
func codeOf(err error) any {
	if err == nil {
		return 1
	}
	for code, known := range map[int]error{
		2:  stream.StreamDoesNotExist,
		5:  stream.StreamAlreadyExists,
		6:  stream.StreamNotAvailable,
		8:  stream.AuthenticationFailure,
		11: stream.AuthenticationFailureLoopbackError,
		12: stream.VirtualHostAccessFailure,
		15: stream.InternalError,
		16: stream.CodeAccessRefused,
		17: stream.PreconditionFailed,
		18: stream.PublisherDoesNotExist,
		19: stream.OffsetNotFoundError,
	} {
		if errors.Is(err, known) {
			return code
		}
	}
	return err.Error()
}

// settle gives a subscription the time to begin.
func settle() {
	time.Sleep(500 * time.Millisecond)
}
