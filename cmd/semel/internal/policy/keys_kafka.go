package policy

import (
	"time"

	"github.com/semel-go/semel/kafka"
)

// The table of a Kafka source, and of a consumer's dead letters.

func kafkaShape() object[Kafka] {
	var all []field[Kafka]
	all = append(all, clusterKeys()...)
	all = append(all, groupKeys()...)
	all = append(all, recordKeys()...)
	all = append(all, securityKeys(func(k *Kafka) **TLS { return &k.TLS }, func(k *Kafka) **SASL { return &k.SASL })...)
	return object[Kafka]{oneOf: []string{"topics", "topic_pattern"}, unsaid: "what is to be read is not said", fields: all}
}

func clusterKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "brokers", required: true, doc: "The brokers to ask first, `host:port` each. One text may hold several, with commas between, as variables of the environment do."},
			brokersShape{}, func(k *Kafka) *[]string { return &k.Brokers }),
		key(meta{name: "topics", doc: "The topics to read. All must exist."},
			list[string]{item: topicName(), single: true}, func(k *Kafka) *[]string { return &k.Topics }),
		key(meta{name: "topic_pattern", doc: "Instead of `topics`, a regular expression (RE2) that must match the whole name of a topic. One that is created later is found within 10 seconds and read from its beginning, also if no process ran when it was created. Topics of the brokers' own (`__…`) and the one for dead letters are never read."},
			word{what: "a regular expression", check: badPattern}, func(k *Kafka) *string { return &k.TopicPattern }),
		key(meta{name: "client_id", def: "semel", doc: "What brokers log, and what their quotas go by."},
			word{what: "a name"}, func(k *Kafka) *string { return &k.ClientID }),
		key(meta{name: "rack", doc: "Where this process runs, as `broker.rack` says it at the brokers. Partitions are then read from a replica there, if the brokers have a `replica.selector.class` that allows it."},
			word{what: "a name"}, func(k *Kafka) *string { return &k.Rack }),
	}
}

func groupKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "group", doc: "The consumer group; the default is the consumer's name. Two consumers in one group would each get half, so each needs its own."},
			word{what: "the name of a group"}, func(k *Kafka) *string { return &k.Group }),
		key(meta{name: "instance", doc: "Makes the member static (`group.instance.id`): a restart within the session time-out moves no partition. Different in each process of a group, as `\"${HOSTNAME}\"`."},
			word{what: "a text that differs in each process"}, func(k *Kafka) *string { return &k.Instance }),
		key(meta{name: "protocol", def: "cooperative", doc: "How partitions are shared out: `cooperative` by the members, moving only what must move; `next_gen` by the brokers (KIP-848), which need Kafka 4.0."},
			choice[bool]{options: []option[bool]{{word: "cooperative"}, {word: "next_gen", value: true}}}, func(k *Kafka) *bool { return &k.NextGen }),
		key(meta{name: "session_timeout", def: "45s", doc: "After how long a silent process loses its partitions. With `next_gen` the brokers' setting counts."},
			span{least: 6 * time.Second, most: 30 * time.Minute}, func(k *Kafka) *time.Duration { return &k.SessionTimeout }),
		key(meta{name: "commit_interval", def: "1s", doc: "How often the group is told how far it is. A partition that moves is committed at once, and so is the end of a run. After a crash the messages since the last commit come again, as duplicates."},
			span{least: 10 * time.Millisecond, most: 10 * time.Minute}, func(k *Kafka) *time.Duration { return &k.CommitInterval }),
		key(meta{name: "on_lost_records", def: "halt", doc: "What follows when records were deleted before they were read: `halt`, the partition stands still and says so until a person sets the group's offset, and the others go on; `go_on`, the loss is logged with its offsets and the partition goes on behind it."},
			choice[kafka.LostRecords]{options: []option[kafka.LostRecords]{{word: "halt", value: kafka.Halt}, {word: "go_on", value: kafka.GoOn}}}, func(k *Kafka) *kafka.LostRecords { return &k.OnLostRecords }),
		key(meta{name: "start", def: "earliest", doc: "Where a topic begins when the group first joins it: `earliest`; `now`, behind what is there; a time; or another group's offsets. It counts once; partitions and topics that come later are read from their beginning."},
			startShape(), func(k *Kafka) *kafka.Start { return &k.Start }),
	}
}

func recordKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "isolation", def: "read_committed", doc: "Whether records of open and aborted transactions are left out, or read as `read_uncommitted`."},
			choice[bool]{options: []option[bool]{{word: "read_committed"}, {word: "read_uncommitted", value: true}}}, func(k *Kafka) *bool { return &k.ReadUncommitted }),
		key(meta{name: "format", def: "records", doc: "What a record becomes: `records` takes key, headers and value as they are, and finds CloudEvents in binary mode by their `ce_` headers; `cloudevents` also reads the structured mode, by its content type."},
			choice[kafka.Format]{options: []option[kafka.Format]{{word: "records", value: kafka.Records}, {word: "cloudevents", value: kafka.CloudEvents}}},
			func(k *Kafka) *kafka.Format { return &k.Format }),
		key(meta{name: "max_record", def: "16MiB", doc: "The longest value that is read as a message. A longer one is set aside as `too large`. At most the `max_body` of the consumers that read it."},
			size{least: 64 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxRecord }),
		key(meta{name: "max_batch", doc: "The most that a batch of records may be when it is decompressed; 32 MiB, or what a record of `max_record` needs, unless it is set. A larger one stops its partition, and the log says how to go on."},
			size{least: 64 << 10, most: 1 << 30}, func(k *Kafka) *int64 { return &k.MaxBatch }),
		key(meta{name: "max_fetch", doc: "The most that one broker sends at once, as it is compressed. Unless it is set, all brokers share a quarter of `max_unacked`, with 1 to 16 MiB each."},
			size{least: 1 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxFetch }),
		key(meta{name: "max_partition_fetch", doc: "The same of one partition; 1 MiB, or `max_fetch` if that is less, unless it is set."},
			size{least: 1 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxPartitionFetch }),
	}
}

// securityKeys are of whoever connects to brokers.
func securityKeys[T any](tls func(*T) **TLS, sasl func(*T) **SASL) []field[T] {
	return []field[T]{
		key(meta{name: "tls", def: "false", doc: "Encrypts every connection: `true` with the system's authorities, or a mapping."},
			encryption{tlsShape()}, tls),
		key(meta{name: "sasl", doc: "Who this side is. Secrets come from the environment or from a file; one that stands in the policy is refused."},
			pointer[SASL]{saslShape()}, sasl),
	}
}

// startShape is a word, a time or a group.
func startShape() object[kafka.Start] {
	return object[kafka.Start]{
		short: choice[kafka.Start]{options: []option[kafka.Start]{
			{word: "earliest"}, {word: "now", value: kafka.Start{Now: true}},
			{word: "latest", reason: "latest would also skip what a new partition got before the group saw it",
				remedy: "write now: it skips only what is there when the group first joins"}}},
		oneOf: []string{"at", "group"},
		fields: []field[kafka.Start]{
			key(meta{name: "at", doc: "The first record with this time or a later one: the producer's, or the broker's where the topic says `LogAppendTime`."},
				instant{}, func(s *kafka.Start) *time.Time { return &s.At }),
			key(meta{name: "group", doc: "The committed offsets of this group. A partition for which it has none begins at its beginning."},
				word{what: "the name of a group"}, func(s *kafka.Start) *string { return &s.Group }),
		}}
}

func tlsShape() object[TLS] {
	return object[TLS]{
		short: encrypted{},
		fields: append(tlsFiles(), key(meta{name: "server_name", doc: "The name expected in the brokers' certificates, where it is not the host."},
			word{what: "a host name"}, func(t *TLS) *string { return &t.ServerName }))}
}

// tlsFiles are the keys of whom this side trusts, and of who it is.
func tlsFiles() []field[TLS] {
	file := path{word: word{what: "a path"}}
	return []field[TLS]{
		key(meta{name: "ca", doc: "A PEM file of authorities, in the place of the system's."}, file, func(t *TLS) *string { return &t.CA }),
		key(meta{name: "cert", doc: "A PEM file with this side's certificate. Needs `key`."}, file, func(t *TLS) *string { return &t.Cert }),
		key(meta{name: "key", doc: "A PEM file with its key."}, file, func(t *TLS) *string { return &t.Key }),
	}
}

func saslShape() object[SASL] {
	return object[SASL]{
		oneOf: []string{"plain", "scram_sha_256", "scram_sha_512", "oauthbearer"},
		fields: []field[SASL]{
			key(meta{name: "plain", doc: "User and password, readable on the way unless `tls` is set."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Plain }),
			key(meta{name: "scram_sha_256", doc: "User and password, proven without sending it."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Scram256 }),
			key(meta{name: "scram_sha_512", doc: "The same with the longer hash."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Scram512 }),
			key(meta{name: "oauthbearer", doc: "A bearer token."}, pointer[Bearer]{bearerShape()}, func(s *SASL) **Bearer { return &s.OAuthBearer }),
		}}
}

func loginShape() object[Login] {
	return object[Login]{
		oneOf: []string{"password", "password_file"},
		fields: []field[Login]{
			key(meta{name: "user", required: true, doc: "The user."}, word{what: "the name of a user"}, func(l *Login) *string { return &l.User }),
			key(meta{name: "password", doc: "The password, as `${NAME}` of the environment."}, secret{}, func(l *Login) *string { return &l.Password }),
			key(meta{name: "password_file", doc: "A file with the password on its only line, read at every login."},
				path{word: word{what: "a path"}}, func(l *Login) *string { return &l.PasswordFile }),
		}}
}

func bearerShape() object[Bearer] {
	return object[Bearer]{
		oneOf: []string{"token", "token_file"},
		fields: []field[Bearer]{
			key(meta{name: "token", doc: "The token, as `${NAME}` of the environment."}, secret{}, func(b *Bearer) *string { return &b.Token }),
			key(meta{name: "token_file", doc: "A file with the token on its only line, read at every login, so that it can be renewed."},
				path{word: word{what: "a path"}}, func(b *Bearer) *string { return &b.TokenFile }),
		}}
}

func deadLetterShape() object[DeadLetter] {
	return object[DeadLetter]{fields: []field[DeadLetter]{
		key(meta{name: "topic", required: true, doc: "A topic of the source's cluster. It must exist, and is none of `topics`; where `topic_pattern` matches it, it is not read."},
			topicName(), func(l *DeadLetter) *string { return &l.Topic }),
	}}
}
