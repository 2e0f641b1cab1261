package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/ha"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

var regions = []string{"amer", "emea", "apac"}

// byHash routes message i by the hash of key-<i>.
func byHash() stream.RoutingStrategy {
	return stream.NewHashRoutingStrategy(func(message message.StreamMessage) string {
		i, _ := numberOf("m", bytesOf(message.GetData()))
		return fmt.Sprintf("key-%d", i)
	})
}

// byRegion routes message i by the binding key at i % 3.
func byRegion() stream.RoutingStrategy {
	return stream.NewKeyRoutingStrategy(func(message message.StreamMessage) string {
		i, _ := numberOf("m", bytesOf(message.GetData()))
		return regions[i%3]
	})
}

// superPublisher counts the confirms of a super stream's producer.
type superPublisher struct {
	*stream.SuperStreamProducer
	publisher
}

func openSuperStream(
	r *run, partitions stream.SuperStreamOptions, routing stream.RoutingStrategy,
) (*stream.Environment, *superPublisher, error) {
	environment, err := r.open(nil)
	if err != nil {
		return nil, nil, err
	}
	if err := environment.DeclareSuperStream(r.stream, partitions); err != nil {
		return nil, nil, err
	}
	producer, err := environment.NewSuperStreamProducer(
		r.stream, stream.NewSuperStreamProducerOptions(routing))
	if err != nil {
		return nil, nil, err
	}
	p := &superPublisher{SuperStreamProducer: producer}
	answers := producer.NotifyPublishConfirmation(1)
	go func() {
		for each := range answers {
			p.count(each.ConfirmationStatus)
		}
	}()
	return environment, p, nil
}

// sendRouted sends messages first to next - 1 and waits until all are confirmed.
func (p *superPublisher) sendRouted(first, next int) error {
	confirmed, refused := p.answered()
	for i := first; i < next; i++ {
		if err := p.SuperStreamProducer.Send(amqp.NewMessage(bodyOf("m", i))); err != nil {
			return err
		}
	}
	return p.wait(confirmed + refused + next - first)
}

func superHash(r *run) (result, error) {
	return routed(r, stream.NewPartitionsOptions(3), byHash(), []string{"0", "1", "2"})
}

func superKey(r *run) (result, error) {
	return routed(r, stream.NewBindingsOptions(regions), byRegion(), regions)
}

func routed(
	r *run, partitions stream.SuperStreamOptions, routing stream.RoutingStrategy, names []string,
) (result, error) {
	environment, producer, err := openSuperStream(r, partitions, routing)
	if err != nil {
		return nil, err
	}
	if err := producer.sendRouted(0, 30); err != nil {
		return nil, err
	}
	inboxes := map[string]*inbox{}
	for _, name := range names {
		inboxes[name], _, err = consume(
			environment, r.stream+"-"+name, from(stream.OffsetSpecification{}.First()))
		if err != nil {
			return nil, err
		}
	}
	err = until("30 messages", func() (bool, error) {
		count := 0
		for _, each := range inboxes {
			count += len(each.all())
		}
		return count >= 30, nil
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(excess)
	found := map[string][]int{}
	for name, each := range inboxes {
		if found[name], err = numbersOf(each.all()); err != nil {
			return nil, err
		}
	}
	return result{"confirmed": producer.confirmed, "read": found}, nil
}

func superRead(r *run) (result, error) {
	environment, producer, err := openSuperStream(r, stream.NewPartitionsOptions(3), byHash())
	if err != nil {
		return nil, err
	}
	if err := producer.sendRouted(0, 30); err != nil {
		return nil, err
	}
	in := &inbox{}
	options := stream.NewSuperStreamConsumerOptions().
		SetOffset(stream.OffsetSpecification{}.First())
	if _, err := environment.NewSuperStreamConsumer(r.stream, in.handle, options); err != nil {
		return nil, err
	}
	numbers, err := in.readNumbers(30)
	slices.Sort(numbers)
	return result{"confirmed": producer.confirmed, "read": numbers}, err
}

// behindStored makes a single active consumer of "group" begin behind what is stored, or at the
// first message.
func behindStored(environment *stream.Environment) *stream.SingleActiveConsumer {
	return stream.NewSingleActiveConsumer(
		func(streamName string, _ bool) stream.OffsetSpecification {
			if offset, err := environment.QueryOffset("group", streamName); err == nil {
				return stream.OffsetSpecification{}.Offset(offset + 1)
			}
			return stream.OffsetSpecification{}.First()
		})
}

func sac(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	var inboxes []*inbox
	var consumers []*stream.Consumer
	for range 2 {
		own, err := r.open(nil)
		if err != nil {
			return nil, err
		}
		options := from(stream.OffsetSpecification{}.First()).
			SetConsumerName("group").SetSingleActiveConsumer(behindStored(own))
		in, consumer, err := consume(own, r.stream, options)
		if err != nil {
			return nil, err
		}
		inboxes, consumers = append(inboxes, in), append(consumers, consumer)
		settle()
	}
	producer, err := newPublisher(environment, r.stream, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	if err := producer.sendAll(0, 10); err != nil {
		return nil, err
	}
	if err := inboxes[0].await(10); err != nil {
		return nil, err
	}
	// Not simply 9: what servers keep in a stream beside messages may take offsets too.
	if err := store(environment, "group", r.stream, inboxes[0].all()[9].offset); err != nil {
		return nil, err
	}
	if err := consumers[0].Close(); err != nil {
		return nil, err
	}
	if err := producer.sendAll(10, 20); err != nil {
		return nil, err
	}
	b, err := inboxes[1].readNumbers(10)
	if err != nil {
		return nil, err
	}
	a, err := numbersOf(inboxes[0].all())
	return result{"a": a, "b": b}, err
}

func superSac(r *run) (result, error) {
	environment, producer, err := openSuperStream(r, stream.NewPartitionsOptions(3), byHash())
	if err != nil {
		return nil, err
	}
	var inboxes []*inbox
	var consumers []*stream.SuperStreamConsumer
	for range 2 {
		own, err := r.open(nil)
		if err != nil {
			return nil, err
		}
		in := &inbox{}
		options := stream.NewSuperStreamConsumerOptions().
			SetOffset(stream.OffsetSpecification{}.First()).
			SetConsumerName("group").SetSingleActiveConsumer(behindStored(own))
		consumer, err := own.NewSuperStreamConsumer(r.stream, in.handle, options)
		if err != nil {
			return nil, err
		}
		inboxes, consumers = append(inboxes, in), append(consumers, consumer)
		settle()
	}
	if err := producer.sendRouted(0, 30); err != nil {
		return nil, err
	}
	both := func() []delivery { return append(inboxes[0].all(), inboxes[1].all()...) }
	err = until("30 messages", func() (bool, error) { return len(both()) >= 30, nil })
	if err != nil {
		return nil, err
	}
	time.Sleep(excess)
	arrived := both()
	hadBefore := len(inboxes[1].all())
	if err := storeLast(environment, arrived); err != nil {
		return nil, err
	}
	if err := consumers[0].Close(); err != nil {
		return nil, err
	}
	if err := producer.sendRouted(30, 60); err != nil {
		return nil, err
	}
	afterwards, err := inboxes[1].read(hadBefore + 30)
	if err != nil {
		return nil, err
	}
	together, err := numbersOf(arrived)
	if err != nil {
		return nil, err
	}
	b, err := numbersOf(afterwards[hadBefore:])
	slices.Sort(together)
	slices.Sort(b)
	return result{"together": together, "b": b}, err
}

// storeLast stores for "group" the last offset that was read of each partition.
func storeLast(environment *stream.Environment, arrived []delivery) error {
	last := map[string]int64{}
	for _, each := range arrived {
		last[each.stream] = max(last[each.stream], each.offset)
	}
	for partition, offset := range last {
		if err := store(environment, "group", partition, offset); err != nil {
			return err
		}
	}
	return nil
}

// recoveryLimit is longer than other waits: the library waits twice, up to 11 s each time, before
// it opens a producer again, and then up to 6 s more for each attempt to connect that failed.
const recoveryLimit = 60 * time.Second

func reconnect(r *run) (result, error) {
	environment, err := r.openWithStream(nil)
	if err != nil {
		return nil, err
	}
	kept := &confirmedNumbers{numbers: map[int]bool{}}
	producer, err := ha.NewReliableProducer(
		environment, r.stream, stream.NewProducerOptions(), kept.add)
	if err != nil {
		return nil, err
	}
	in := &inbox{}
	_, err = ha.NewReliableConsumer(
		environment, r.stream, from(stream.OffsetSpecification{}.First()), in.handle)
	if err != nil {
		return nil, err
	}
	if err := sendUntilConfirmed(producer, kept, 0, 10); err != nil {
		return nil, err
	}
	before, err := in.readNumbers(10)
	if err != nil {
		return nil, err
	}
	if err := r.waitFor("restart"); err != nil {
		return nil, err
	}
	if err := sendUntilConfirmed(producer, kept, 10, 20); err != nil {
		return nil, err
	}
	var after []int
	err = untilWithin(recoveryLimit, "messages after the restart", func() (bool, error) {
		all, err := numbersOf(in.all())
		if err != nil {
			return false, err
		}
		after = onceEach(all[len(before):])
		return len(after) >= 10, nil
	})
	return result{"before": before, "after": after, "recovery": "library"}, err
}

// confirmedNumbers are the messages that the server has confirmed.
type confirmedNumbers struct {
	lock    sync.Mutex
	numbers map[int]bool
}

func (c *confirmedNumbers) add(answers []*stream.ConfirmationStatus) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, each := range answers {
		if i, err := numberOf("m", bytesOf(each.GetMessage().GetData())); err == nil {
			c.numbers[i] = c.numbers[i] || each.IsConfirmed()
		}
	}
}

func (c *confirmedNumbers) has(i int) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.numbers[i]
}

// sendUntilConfirmed sends each message again until the server has confirmed it.
func sendUntilConfirmed(
	producer *ha.ReliableProducer, kept *confirmedNumbers, first, next int,
) error {
	for i := first; i < next; i++ {
		err := untilWithin(recoveryLimit, fmt.Sprintf("confirm of %d", i), func() (bool, error) {
			if err := producer.Send(amqp.NewMessage(bodyOf("m", i))); err != nil {
				return false, err
			}
			asked := time.Now()
			for !kept.has(i) && time.Since(asked) < time.Second {
				time.Sleep(5 * time.Millisecond)
			}
			return kept.has(i), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onceEach leaves out what came before.
func onceEach(numbers []int) []int {
	once := []int{}
	for _, i := range numbers {
		if !slices.Contains(once, i) {
			once = append(once, i)
		}
	}
	return once
}
