package bench

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaLoop is the usual loop around franz-go, which does not recognise duplicates. The loop polls, writes one
// transaction in one round trip, and commits the offsets.
func kafkaLoop(ctx context.Context, t kafkaTopic, group string, pool *pgxpool.Pool, effect string) (applied int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(t.name),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return 0, err
	}
	defer client.CloseAllowingRebalance()
	for applied < t.messages {
		fetches := client.PollRecords(ctx, batchMost)
		if err := fetches.Err(); err != nil {
			return applied, err
		}
		records := fetches.Records()
		if err := insertAll(ctx, pool, effect, records); err != nil {
			return applied, err
		}
		if err := client.CommitRecords(ctx, records...); err != nil {
			return applied, err
		}
		client.AllowRebalance()
		applied += len(records)
	}
	return applied, nil
}

func insertAll(ctx context.Context, pool *pgxpool.Pool, effect string, records []*kgo.Record) error {
	var batch pgx.Batch
	batch.Queue("begin isolation level read committed")
	for _, r := range records {
		var p payment
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return err
		}
		batch.Queue(effect, p.Account, p.Amount)
	}
	batch.Queue("commit")
	return pool.SendBatch(ctx, &batch).Close()
}
