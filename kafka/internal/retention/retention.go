// Package retention computes how long a record can stay in a topic, from the topic's settings.
package retention

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Settings of a topic that control the removal of records.
const (
	Policy         = "cleanup.policy"
	RetentionTime  = "retention.ms"
	SegmentTime    = "segment.ms"
	TimestampType  = "message.timestamp.type"
	TimestampAhead = "message.timestamp.after.max.ms"
)

const (
	// The value of segment.ms that is used if the brokers do not report segment.ms, for example brokers without
	// segments.
	usualSegment = 7 * 24 * time.Hour
	// RemovalCheck is the default interval at which brokers look for records to remove. The setting
	// log.retention.check.interval.ms can change this interval, but few users have the privilege to read the setting.
	RemovalCheck = 5 * time.Minute
)

// Settings holds the values of a topic's settings by name.
type Settings map[string]string

// Request returns a request for the settings of topics.
func Request(topics []string) *kmsg.DescribeConfigsRequest {
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, topic := range topics {
		asked := kmsg.NewDescribeConfigsRequestResource()
		asked.ResourceType, asked.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		asked.ConfigNames = []string{Policy, RetentionTime, SegmentTime, TimestampType, TimestampAhead}
		request.Resources = append(request.Resources, asked)
	}
	return request
}

// Read returns the settings in a response, by topic. The function explain adds an explanation to a broker's error for a
// topic.
func Read(response *kmsg.DescribeConfigsResponse, explain func(err error, topic string) error) (map[string]Settings, error) {
	all := map[string]Settings{}
	var errs error
	for _, answer := range response.Resources {
		switch err := kerr.ErrorForCode(answer.ErrorCode); {
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			errs = errors.Join(errs, fmt.Errorf("kafka: this user may not read the settings of topic %s, so how late its records can be redelivered is not known; allow it DESCRIBE_CONFIGS on the topic (kafka-acls.sh --add --allow-principal User:… --operation DescribeConfigs --topic %s): %w", answer.ResourceName, answer.ResourceName, err))
			continue
		case err != nil:
			errs = errors.Join(errs, explain(err, answer.ResourceName))
			continue
		}
		of := Settings{}
		for _, c := range answer.Configs {
			if c.Value != nil {
				of[c.Name] = *c.Value
			}
		}
		all[answer.ResourceName] = of
	}
	return all, errs
}

// Longest returns the longest horizon of the given topics: the time for which a record can stay in one of them.
func Longest(topics []string, all map[string]Settings) (source.Horizon, error) {
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

// horizon returns how long a record may stay in a topic.
func (s Settings) horizon(topic string) (source.Horizon, error) {
	policy, told := s[Policy]
	if !told {
		return source.Horizon{}, notTold(topic, Policy)
	}
	if !slices.ContainsFunc(strings.Split(policy, ","), func(one string) bool { return strings.TrimSpace(one) == "delete" }) {
		return endless(topic, Policy, policy), nil
	}
	parts := []struct {
		name    string
		usual   time.Duration
		needed  bool
		counted bool
	}{
		{RetentionTime, 0, true, true},
		{SegmentTime, usualSegment, false, true},
		{TimestampAhead, 0, false, s[TimestampType] != "LogAppendTime" && s[TimestampAhead] != strconv.Itoa(math.MaxInt64)},
	}
	late, why := RemovalCheck, "topic "+topic+": "
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
			return source.Horizon{}, fmt.Errorf("kafka: topic %s: the brokers say %s=%s, which is not a number of milliseconds: %w", topic, p.name, value, err)
		}
		if !finite || d > math.MaxInt64-late {
			return endless(topic, p.name, value), nil
		}
		if late += d; d > 0 {
			why += p.name + " " + legible.Span(d) + " + "
		}
	}
	return source.Horizon{Late: late, Why: why + legible.Span(RemovalCheck) + " until the brokers remove it"}, nil
}

func endless(topic, setting, value string) source.Horizon {
	return source.Horizon{Unlimited: true, Why: fmt.Sprintf("topic %s: %s is %s", topic, setting, value)}
}

func notTold(topic, setting string) error {
	return fmt.Errorf("kafka: topic %s: the brokers do not report its %s, so how late its records can be redelivered is not known", topic, setting)
}

// span parses a setting in milliseconds. The result finite is false if the value means unlimited. The parameter usual
// is the result if the brokers do not report the setting.
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
