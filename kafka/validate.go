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
	// The time for which the group waits until a member gives up revoked partitions.
	rebalanceTimeout = time.Minute
	// The limits of CommitInterval.
	leastCommit = 10 * time.Millisecond
	mostCommit  = 10 * time.Minute
	// mostRevoke is the largest RevokeTimeout. mostRevoke is shorter than rebalanceTimeout, so that time is left for
	// the last commit and for joining.
	mostRevoke = 50 * time.Second
	// leastRecord is the smallest allowed MaxRecord. mostRecord is the largest record that the client can read
	// in one response.
	leastRecord = message.Kept
	mostRecord  = producer.MostRecord
	// The constant mostBatch is the largest allowed MaxBatch, and leastFetch is the smallest allowed fetch size.
	mostBatch  = 1 << 30
	leastFetch = 1 << 10
	// The maximum length of a topic name in Kafka.
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

// problems collects the faults of a configuration.
type problems []error

// addIf adds a problem if the parameter wrong is true.
func (p *problems) addIf(wrong bool, format string, values ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf("kafka: "+format, values...))
	}
}

// validate returns all faults of a configuration. The caller must have set the defaults.
func (c Config) validate() error {
	var p problems
	p.brokers(c.Brokers)
	c.validateTopics(&p)
	p.addIf(c.Group == "", "Group is empty; give the consumer a group of its own")
	p.addIf(c.SessionTimeout < time.Second, "SessionTimeout is %v; use at least 1s (brokers allow 6s to 30m unless set otherwise)", c.SessionTimeout)
	p.addIf(c.RevokeTimeout < 0 || c.RevokeTimeout > mostRevoke, "RevokeTimeout is %v; use 0 to %v: the group waits %v for a member, and leaving takes time as well", c.RevokeTimeout, mostRevoke, rebalanceTimeout)
	p.addIf(c.CommitInterval < leastCommit || c.CommitInterval > mostCommit, "CommitInterval is %v; use %v to %v: after a crash, messages since the last commit are delivered again", c.CommitInterval, leastCommit, mostCommit)
	c.validateStart(&p)
	c.validateRecords(&p)
	return errors.Join(append(p, options.Check(c.Options))...)
}

func (p *problems) brokers(all []string) {
	p.addIf(len(all) == 0, "Brokers is empty; name at least one broker as host:port")
	for _, b := range all {
		host, port, err := net.SplitHostPort(b)
		n, convert := strconv.Atoi(port)
		p.addIf(err != nil || host == "" || convert != nil || n < 1 || n > 65535, "broker %q is not host:port; write it like kafka.example:9092", b)
	}
}

func (c Config) validateTopics(p *problems) {
	_, invalid := CompilePattern(c.TopicPattern)
	p.addIf(len(c.Topics) == 0 && c.TopicPattern == "", "Topics and TopicPattern are empty; name the topics to read")
	both := len(c.Topics) > 0 && c.TopicPattern != ""
	p.addIf(both, "Topics and TopicPattern are both set; remove one of them")
	p.addIf(invalid != nil && !both, "TopicPattern %q is not a regular expression (RE2): %w", c.TopicPattern, invalid)
	for i, t := range c.Topics {
		p.topic(t, "")
		p.addIf(slices.Contains(c.Topics[:i], t), "topic %q is named twice; name it once", t)
	}
	if c.DeadLetters != "" {
		p.topic(c.DeadLetters, " for dead letters")
		p.addIf(slices.Contains(c.Topics, c.DeadLetters), "dead letters would go to %q, which is read: each would be delivered again; use another topic", c.DeadLetters)
	}
}

// topic adds the faults of a topic's name. The text of the fault contains the parameter purpose, which says what the
// topic is used for.
func (p *problems) topic(name, purpose string) {
	fault := topicFault(name)
	p.addIf(fault != "", "topic %q%s %s", name, purpose, fault)
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
			return "has a character that Kafka does not allow; use letters, digits, '.', '_' and '-', and TopicPattern for patterns"
		}
	}
	return ""
}

func (c Config) validateStart(p *problems) {
	ways := 0
	for _, set := range []bool{c.Start.Now, !c.Start.At.IsZero(), c.Start.Group != ""} {
		if set {
			ways++
		}
	}
	p.addIf(ways > 1, "Start names more than one place to begin; set one of Now, At and Group")
	p.addIf(ways == 1 && c.Start.Group != "" && c.Start.Group == c.Group, "Start.Group is the consumer's own group %q; a group always begins at its own offsets", c.Group)
}

func (c Config) validateRecords(p *problems) {
	p.addIf(c.Format > CloudEvents, "format %d is unknown; use Records or CloudEvents", c.Format)
	p.addIf(c.OnLostRecords > GoOn, "OnLostRecords %d is unknown; use Halt or GoOn", c.OnLostRecords)
	p.addIf(c.MaxRecord < leastRecord || c.MaxRecord > mostRecord, "MaxRecord is %d bytes; use %d to %d", c.MaxRecord, leastRecord, mostRecord)
	p.addIf(c.MaxBatch < c.MaxRecord || c.MaxBatch > mostBatch, "MaxBatch is %d bytes; use %d to %d: a batch holds a record of MaxRecord at least", c.MaxBatch, c.MaxRecord, mostBatch)
	fetch := func(name string, bytes int) {
		p.addIf(bytes != 0 && (bytes < leastFetch || bytes > mostRecord), "%s is %d bytes; use %d to %d, or 0 for a default that depends on MaxUnacked", name, bytes, leastFetch, mostRecord)
	}
	fetch("MaxFetch", c.MaxFetch)
	fetch("MaxPartitionFetch", c.MaxPartitionFetch)
}
