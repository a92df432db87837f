package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/options"
	"github.com/semel-go/semel/kafka/internal/producer"
)

// Defaults and limits of Config.
const (
	defaultSession   = 45 * time.Second
	defaultRevoke    = 20 * time.Second
	defaultCommit    = time.Second
	defaultMaxRecord = 16 << 20
	defaultMaxBatch  = 32 << 20
	defaultClientID  = "semel"
	// rebalanceTimeout is how long the group waits for a member to give up
	// what it must.
	rebalanceTimeout = time.Minute
	// leastCommit and mostCommit bound how often offsets are committed.
	leastCommit = 10 * time.Millisecond
	mostCommit  = 10 * time.Minute
	// mostRevoke leaves room in it for the last commit and for joining.
	mostRevoke = 50 * time.Second
	// leastRecord is the least MaxRecord, mostRecord what the client reads in one response.
	leastRecord = message.Kept
	mostRecord  = producer.MostRecord
	// mostBatch is the largest a batch can be, leastFetch the least that it
	// makes sense to ask for.
	mostBatch  = 1 << 30
	leastFetch = 1 << 10
	// topicName is the longest name Kafka allows.
	topicName = 249
)

func (c Config) withDefaults() Config {
	setDefault(&c.SessionTimeout, defaultSession)
	setDefault(&c.RevokeTimeout, defaultRevoke)
	setDefault(&c.CommitInterval, defaultCommit)
	setDefault(&c.MaxRecord, defaultMaxRecord)
	setDefault(&c.MaxBatch, max(defaultMaxBatch, c.MaxRecord+1<<20))
	setDefault(&c.ClientID, defaultClientID)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// validate reports every fault of a configuration with its defaults.
func (c Config) validate() error {
	return errors.Join(c.validateBrokers(), c.validateTopics(), c.validateGroup(), c.validateStart(), c.validateRecords(), options.Check(c.Options))
}

func (c Config) validateBrokers() error {
	var err error
	if len(c.Brokers) == 0 {
		err = errors.New("kafka: Brokers is empty; name at least one broker as host:port")
	}
	for _, b := range c.Brokers {
		host, port, e := net.SplitHostPort(b)
		if n, convert := strconv.Atoi(port); e != nil || host == "" || convert != nil || n < 1 || n > 65535 {
			err = errors.Join(err, fmt.Errorf("kafka: broker %q is no host:port; write it like kafka.example:9092", b))
		}
	}
	return err
}

func (c Config) validateTopics() error {
	var err error
	switch _, invalid := CompilePattern(c.TopicPattern); {
	case len(c.Topics) == 0 && c.TopicPattern == "":
		err = errors.New("kafka: Topics and TopicPattern are empty; name what is to be read")
	case len(c.Topics) > 0 && c.TopicPattern != "":
		err = errors.New("kafka: Topics and TopicPattern are both set; leave one of them out")
	case invalid != nil:
		err = fmt.Errorf("kafka: TopicPattern %q is no regular expression (RE2): %w", c.TopicPattern, invalid)
	}
	for i, t := range c.Topics {
		if fault := topicFault(t); fault != "" {
			err = errors.Join(err, fmt.Errorf("kafka: topic %q %s", t, fault))
		}
		if slices.Contains(c.Topics[:i], t) {
			err = errors.Join(err, fmt.Errorf("kafka: topic %q is named twice; name it once", t))
		}
	}
	if c.DeadLetters == "" {
		return err
	}
	if fault := topicFault(c.DeadLetters); fault != "" {
		err = errors.Join(err, fmt.Errorf("kafka: topic %q for dead letters %s", c.DeadLetters, fault))
	}
	if slices.Contains(c.Topics, c.DeadLetters) {
		err = errors.Join(err, fmt.Errorf("kafka: dead letters would go to %q, which is read: each would come again; use another topic", c.DeadLetters))
	}
	return err
}

func topicFault(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "is no name"
	case len(name) > topicName:
		return fmt.Sprintf("has %d bytes; Kafka allows %d", len(name), topicName)
	}
	for i := range len(name) {
		b := name[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && b != '.' && b != '_' && b != '-' {
			return "has a character that Kafka does not allow; letters, digits, '.', '_' and '-' are, patterns are not"
		}
	}
	return ""
}

func (c Config) validateGroup() error {
	var err error
	if c.Group == "" {
		err = errors.New("kafka: Group is empty; give the consumer a group of its own")
	}
	if c.SessionTimeout < time.Second {
		err = errors.Join(err, fmt.Errorf("kafka: SessionTimeout is %v; use at least 1s (brokers allow 6s to 30m unless set otherwise)", c.SessionTimeout))
	}
	if c.RevokeTimeout < 0 || c.RevokeTimeout > mostRevoke {
		err = errors.Join(err, fmt.Errorf("kafka: RevokeTimeout is %v; use 0 to %v: the group waits %v for a member, and leaving takes time as well", c.RevokeTimeout, mostRevoke, rebalanceTimeout))
	}
	if c.CommitInterval < leastCommit || c.CommitInterval > mostCommit {
		err = errors.Join(err, fmt.Errorf("kafka: CommitInterval is %v; use %v to %v: until a commit, what was done comes again after a crash", c.CommitInterval, leastCommit, mostCommit))
	}
	return err
}

func (c Config) validateStart() error {
	ways := 0
	for _, set := range []bool{c.Start.Now, !c.Start.At.IsZero(), c.Start.Group != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("kafka: Start names more than one place to begin; set one of Now, At and Group")
	}
	if c.Start.Group != "" && c.Start.Group == c.Group {
		return fmt.Errorf("kafka: Start.Group is the consumer's own group %q; a group begins at its own offsets anyway", c.Group)
	}
	return nil
}

func (c Config) validateRecords() error {
	var err error
	if c.Format > CloudEvents {
		err = fmt.Errorf("kafka: format %d is unknown; use Records or CloudEvents", c.Format)
	}
	if c.OnLostRecords > GoOn {
		err = errors.Join(err, fmt.Errorf("kafka: OnLostRecords %d is unknown; use Halt or GoOn", c.OnLostRecords))
	}
	if c.MaxRecord < leastRecord || c.MaxRecord > mostRecord {
		err = errors.Join(err, fmt.Errorf("kafka: MaxRecord is %d bytes; use %d to %d", c.MaxRecord, leastRecord, mostRecord))
	}
	if c.MaxBatch < c.MaxRecord || c.MaxBatch > mostBatch {
		err = errors.Join(err, fmt.Errorf("kafka: MaxBatch is %d bytes; use %d to %d: a batch holds a record of MaxRecord at least", c.MaxBatch, c.MaxRecord, mostBatch))
	}
	for _, fetch := range []struct {
		name  string
		bytes int
	}{{"MaxFetch", c.MaxFetch}, {"MaxPartitionFetch", c.MaxPartitionFetch}} {
		if fetch.bytes != 0 && (fetch.bytes < leastFetch || fetch.bytes > mostRecord) {
			err = errors.Join(err, fmt.Errorf("kafka: %s is %d bytes; use %d to %d, or 0 for what follows from MaxUnacked", fetch.name, fetch.bytes, leastFetch, mostRecord))
		}
	}
	return err
}
