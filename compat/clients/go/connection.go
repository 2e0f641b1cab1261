package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

const (
	limit  = 20 * time.Second       // of every wait
	excess = 300 * time.Millisecond // how long to wait for what should not come

	// The library's own 8 KiB make a message of a megabyte take longer than the limit.
	socketBytes = 1 << 20
)

// run is one run of one scenario.
type run struct {
	server
	stream       string
	values       map[string]string
	lines        *bufio.Scanner
	environments []*stream.Environment
}

// close ends all connections that the run opened.
func (r *run) close() {
	for _, each := range r.environments {
		_ = each.Close()
	}
}

// open connects with the options that tune has changed.
func (r *run) open(tune func(*stream.EnvironmentOptions)) (*stream.Environment, error) {
	options := stream.NewEnvironmentOptions().SetHost(r.host).SetPort(r.port).
		SetReadBuffer(socketBytes).SetWriteBuffer(socketBytes)
	if tune != nil {
		tune(options)
	}
	environment, err := stream.NewEnvironment(options)
	if err != nil {
		return nil, err
	}
	r.environments = append(r.environments, environment)
	return environment, nil
}

// openWithStream connects and creates the run's stream.
func (r *run) openWithStream(tune func(*stream.EnvironmentOptions)) (*stream.Environment, error) {
	environment, err := r.open(tune)
	if err != nil {
		return nil, err
	}
	return environment, environment.DeclareStream(r.stream, stream.NewStreamOptions())
}

// overTLS makes a connection use TLS and trust the authority of a PEM file.
func (r *run) overTLS(authority string, settings *tls.Config) (func(*stream.EnvironmentOptions), error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", authority)
	}
	settings.ServerName = r.host
	return func(options *stream.EnvironmentOptions) {
		options.SetPort(r.tlsPort).IsTLS(true).SetTLSConfig(settings)
	}, nil
}

// publisher counts what the server says of the messages of a producer.
type publisher struct {
	*stream.Producer
	lock      sync.Mutex
	confirmed int
	refused   int
}

func newPublisher(
	environment *stream.Environment, name string, options *stream.ProducerOptions,
) (*publisher, error) {
	producer, err := environment.NewProducer(name, options)
	if err != nil {
		return nil, err
	}
	p := &publisher{Producer: producer}
	answers := producer.NotifyPublishConfirmation()
	go func() {
		for each := range answers {
			p.count(each)
		}
	}()
	return p, nil
}

func (p *publisher) count(answers []*stream.ConfirmationStatus) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, each := range answers {
		if each.IsConfirmed() {
			p.confirmed++
		} else {
			p.refused++
		}
	}
}

func (p *publisher) answered() (confirmed, refused int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.confirmed, p.refused
}

// wait returns when the server has answered so many messages since the producer began.
func (p *publisher) wait(count int) error {
	return until(fmt.Sprintf("%d confirms", count), func() (bool, error) {
		confirmed, refused := p.answered()
		return confirmed+refused >= count, nil
	})
}

// sendAll sends messages first to next - 1, each by itself, and waits until all are confirmed.
func (p *publisher) sendAll(first, next int) error {
	confirmed, refused := p.answered()
	for i := first; i < next; i++ {
		if err := p.Send(amqp.NewMessage(bodyOf("m", i))); err != nil {
			return err
		}
	}
	return p.wait(confirmed + refused + next - first)
}

// sendGroup sends messages at once and waits until all are confirmed.
func (p *publisher) sendGroup(mark string, first, next int) error {
	confirmed, refused := p.answered()
	if err := p.BatchSend(group(mark, first, next)); err != nil {
		return err
	}
	return p.wait(confirmed + refused + next - first)
}

func group(mark string, first, next int) []message.StreamMessage {
	var messages []message.StreamMessage
	for i := first; i < next; i++ {
		messages = append(messages, amqp.NewMessage(bodyOf(mark, i)))
	}
	return messages
}

// delivery is one message that a consumer was given.
type delivery struct {
	stream string
	offset int64
	body   []byte
}

// inbox keeps what consumers were given, in order of arrival.
type inbox struct {
	lock    sync.Mutex
	arrived []delivery
}

func (in *inbox) handle(context stream.ConsumerContext, message *amqp.Message) {
	in.lock.Lock()
	defer in.lock.Unlock()
	in.arrived = append(in.arrived, delivery{
		stream: context.Consumer.GetStreamName(),
		offset: context.Consumer.GetOffset(),
		body:   bytesOf(message.Data),
	})
}

func bytesOf(sections [][]byte) []byte {
	var body []byte
	for _, each := range sections {
		body = append(body, each...)
	}
	return body
}

func (in *inbox) all() []delivery {
	in.lock.Lock()
	defer in.lock.Unlock()
	return append([]delivery{}, in.arrived...)
}

// await returns when so many messages are there, without waiting for more.
func (in *inbox) await(count int) error {
	return until(fmt.Sprintf("%d messages", count), func() (bool, error) {
		return len(in.all()) >= count, nil
	})
}

// read returns so many messages, and any that come although they should not.
func (in *inbox) read(count int) ([]delivery, error) {
	if err := in.await(count); err != nil {
		return nil, fmt.Errorf("%w; there are %d", err, len(in.all()))
	}
	time.Sleep(excess)
	return in.all(), nil
}

// readNumbers reads like read, and tells which messages they are.
func (in *inbox) readNumbers(count int) ([]int, error) {
	arrived, err := in.read(count)
	if err != nil {
		return nil, err
	}
	return numbersOf(arrived)
}

// consume begins to read a stream into a new inbox.
func consume(
	environment *stream.Environment, name string, options *stream.ConsumerOptions,
) (*inbox, *stream.Consumer, error) {
	in := &inbox{}
	consumer, err := environment.NewConsumer(name, in.handle, options)
	return in, consumer, err
}

// readStream reads so many messages from the beginning of a stream.
func readStream(environment *stream.Environment, name string, count int) ([]delivery, error) {
	in, _, err := consume(environment, name, from(stream.OffsetSpecification{}.First()))
	if err != nil {
		return nil, err
	}
	return in.read(count)
}

func from(offset stream.OffsetSpecification) *stream.ConsumerOptions {
	return stream.NewConsumerOptions().SetOffset(offset)
}

// until asks again and again until it is so; an error when the limit is reached first.
func until(what string, isSo func() (bool, error)) error {
	return untilWithin(limit, what, isSo)
}

func untilWithin(atMost time.Duration, what string, isSo func() (bool, error)) error {
	for end := time.Now().Add(atMost); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if so, err := isSo(); so || err != nil {
			return err
		}
	}
	return errors.New("waited too long for " + what)
}
