package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The settings of a topic by which its records are removed.
const (
	settingPolicy    = "cleanup.policy"
	settingRetention = "retention.ms"
	settingSegment   = "segment.ms"
	settingTimes     = "message.timestamp.type"
	settingAhead     = "message.timestamp.after.max.ms"
)

const (
	// usualSegment is segment.ms where brokers do not tell it, as those that keep no
	// segments.
	usualSegment = 7 * 24 * time.Hour
	// removalCheck is how often brokers look for what may be removed, unless
	// log.retention.check.interval.ms says otherwise, which few users may read.
	removalCheck = 5 * time.Minute
)

// horizon is source.Info.Horizon: how long a record of the topics that are read
// now may stay in them, and of the topic for dead letters, from which records are
// brought back. The topic counts in which that is longest. The brokers remove a segment
// when its newest record is older than retention.ms, and a segment takes records for
// segment.ms; with producers' times (CreateTime) a record may be dated ahead by
// message.timestamp.after.max.ms, where that is bounded. Size limits, which remove
// earlier, do not count, and tiered storage changes nothing, since retention.ms is of
// both tiers. A topic that is only compacted, or never emptied, has no horizon
// (Unlimited).
//
// It fails where the brokers cannot be reached or do not tell the settings, as for a user
// without DESCRIBE_CONFIGS on the topics; after Close its error wraps semel.ErrClosed. It
// connects if that has not happened.
func (s *Source) horizon(ctx context.Context) (source.Horizon, error) {
	if open, err := s.brokers.open(s.startBackground); err != nil {
		return source.Horizon{}, err
	} else if !open {
		return source.Horizon{}, fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := s.topics.lasting(ctx)
	if err != nil {
		return source.Horizon{}, err
	}
	if len(names) == 0 {
		return source.Horizon{Why: "no topic matches " + s.config.TopicPattern}, nil
	}
	all, err := s.brokers.settingsOf(ctx, names)
	if err != nil {
		return source.Horizon{}, err
	}
	return longest(names, all)
}

// lasting are the topics whose records may be delivered: those that are read, or match
// now, and the one for dead letters.
func (t *topics) lasting(ctx context.Context) ([]string, error) {
	names := slices.Clone(t.named())
	if t.pattern != nil {
		found, err := t.list(ctx)
		if err != nil {
			return nil, err
		}
		for topic := range found.topics {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// topicSettings are those of a topic, by their names.
type topicSettings map[string]string

// settingsOf asks for the settings of topics.
func (b *brokers) settingsOf(ctx context.Context, topics []string) (map[string]topicSettings, error) {
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, topic := range topics {
		asked := kmsg.NewDescribeConfigsRequestResource()
		asked.ResourceType, asked.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		asked.ConfigNames = []string{settingPolicy, settingRetention, settingSegment, settingTimes, settingAhead}
		request.Resources = append(request.Resources, asked)
	}
	response, err := request.RequestWith(ctx, b.client())
	if err != nil {
		return nil, b.unreachable(err)
	}
	all := map[string]topicSettings{}
	var errs error
	for _, answer := range response.Resources {
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			errs = errors.Join(errs, explainSettings(err, answer.ResourceName, b.config.Group))
			continue
		}
		of := topicSettings{}
		for _, c := range answer.Configs {
			if c.Value != nil {
				of[c.Name] = *c.Value
			}
		}
		all[answer.ResourceName] = of
	}
	return all, errs
}

// explainSettings says what it means that brokers do not tell a topic's settings.
func explainSettings(err error, topic, group string) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("kafka: this user may not read the settings of topic %s, so how late its records can come again is not known; allow it DESCRIBE_CONFIGS on the topic (kafka-acls.sh --add --allow-principal User:… --operation DescribeConfigs --topic %s): %w", topic, topic, err)
	}
	return explain(err, topic, group)
}

// longest is the horizon of the topic in which records stay longest.
func longest(topics []string, all map[string]topicSettings) (source.Horizon, error) {
	var most source.Horizon
	var errs error
	for _, topic := range topics {
		h, err := all[topic].horizon(topic)
		errs = errors.Join(errs, err)
		if !most.Unlimited && (h.Unlimited || h.Late > most.Late) {
			most = h
		}
	}
	if errs != nil {
		return source.Horizon{}, errs
	}
	return most, nil
}

// horizon is how long a record may stay in a topic.
func (s topicSettings) horizon(topic string) (source.Horizon, error) {
	policy, told := s[settingPolicy]
	if !told {
		return source.Horizon{}, notTold(topic, settingPolicy)
	}
	if !slices.ContainsFunc(strings.Split(policy, ","), func(one string) bool { return strings.TrimSpace(one) == "delete" }) {
		return endless(topic, settingPolicy, policy), nil
	}
	parts := []struct {
		name    string
		usual   time.Duration
		needed  bool
		counted bool
	}{
		{settingRetention, 0, true, true},
		{settingSegment, usualSegment, false, true},
		{settingAhead, 0, false, s[settingTimes] != "LogAppendTime" && s[settingAhead] != strconv.Itoa(math.MaxInt64)},
	}
	late, why := removalCheck, "topic "+topic+": "
	for _, p := range parts {
		if !p.counted {
			continue
		}
		value, told := s[p.name]
		if !told && p.needed {
			return source.Horizon{}, notTold(topic, p.name)
		}
		d, finite, err := span(value, p.usual)
		if err != nil {
			return source.Horizon{}, fmt.Errorf("kafka: topic %s: the brokers say %s=%s, which is no number of milliseconds: %w", topic, p.name, value, err)
		}
		if !finite || d > math.MaxInt64-late {
			return endless(topic, p.name, value), nil
		}
		if late += d; d > 0 {
			why += p.name + " " + legible.Span(d) + " + "
		}
	}
	return source.Horizon{Late: late, Why: why + legible.Span(removalCheck) + " until the brokers remove it"}, nil
}

func endless(topic, setting, value string) source.Horizon {
	return source.Horizon{Unlimited: true, Why: fmt.Sprintf("topic %s: %s is %s", topic, setting, value)}
}

func notTold(topic, setting string) error {
	return fmt.Errorf("kafka: topic %s: the brokers do not tell its %s, so how late its records can come again is not known", topic, setting)
}

// span is a setting in milliseconds, which may be without an end; usual where it is not
// told.
func span(value string, usual time.Duration) (d time.Duration, finite bool, err error) {
	if value == "" {
		return usual, true, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, false, err
	}
	if n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, false, nil
	}
	return time.Duration(n) * time.Millisecond, true, nil
}
