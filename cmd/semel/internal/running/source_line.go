package running

import (
	"fmt"
	"log/slog"
	"strings"
)

// sourceLine shortens, for terminals, a log line about the source of a consumer, such as "billing: topic
// orders, group billing". For other log lines, sourceLine returns "". If the log line has no name of a
// consumer, sourceLine uses the parameter consumer.
func sourceLine(consumer string, r slog.Record) string {
	var describe func(attributes) string
	switch r.Message {
	case "the consumer starts":
		describe = attributes.describeSource
	case "partitions assigned":
		describe = attributes.describePartitions
	case "file opened":
		describe = attributes.describeFile
	case "webhooks are received":
		describe = attributes.describeWebhook
	default: // all other lines stay out, for example the lines about single messages, of which a run can log millions
		return ""
	}
	about := attributes{}
	r.Attrs(func(a slog.Attr) bool {
		about.add("", a)
		return true
	})
	if of, ok := about["consumer"]; ok {
		consumer = of.String()
	}
	reads := describe(about)
	if reads == "" {
		return ""
	}
	return consumer + ": " + reads
}

// attributes has the attributes of a log line by name. An attribute in a group has the name group.name.
type attributes map[string]slog.Value

func (all attributes) add(prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		all[prefix+a.Key] = value
		return
	}
	for _, inner := range value.Group() {
		all.add(prefix+a.Key+".", inner)
	}
}

// describeSource describes a topic or standard input. describeFile describes files.
func (all attributes) describeSource() string {
	if group, ok := all["source.group"]; ok {
		topics, _ := all["source.topics"].Any().([]string)
		switch pattern, ok := all["source.topic_pattern"]; {
		case ok:
			return fmt.Sprintf("topics that match %s, group %s", pattern, group)
		case len(topics) == 1:
			return fmt.Sprintf("topic %s, group %s", topics[0], group)
		}
		return fmt.Sprintf("topics %s, group %s", strings.Join(topics, ", "), group)
	}
	if all["source.file"].String() == "stdin" {
		return "standard input"
	}
	return ""
}

// describePartitions describes the partitions that Kafka assigned to this process.
func (all attributes) describePartitions() string {
	partitions, _ := all["partitions"].Any().([]string)
	var named []string
	for _, p := range partitions {
		lane, offset, _ := strings.Cut(p, "@")
		if offset == "start" {
			offset = "the start"
		}
		named = append(named, lane+" from "+offset)
	}
	text, count := strings.Join(named, ", "), all["count"].Int64()
	if more := count - int64(len(named)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if count != 1 {
		return fmt.Sprintf("%d partitions: %s", count, text)
	}
	return "1 partition: " + text
}

// describeFile describes a file and the byte at which reading starts.
func (all attributes) describeFile() string {
	file, from := all["source.file"], all["source.from"]
	if from.Kind() != slog.KindInt64 || from.Int64() == 0 {
		return fmt.Sprintf("file %s, from the start", file)
	}
	return fmt.Sprintf("file %s, from byte %d", file, from.Int64())
}

// describeWebhook describes the address that receives webhooks.
func (all attributes) describeWebhook() string {
	return fmt.Sprintf("webhooks at %s%s", all["address"], all["path"])
}
