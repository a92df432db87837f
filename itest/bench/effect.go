package bench

import "github.com/semel-go/semel"

// payment is the body of every message.
type payment struct {
	Account int64 `json:"account"`
	Amount  int64 `json:"amount"`
}

// SQL that creates the tables for the effects, and for the markers of implementations other than Semel. The
// hand-written markers have the same columns as Semel's markers.
const schema = `
create table payments (account bigint not null, amount bigint not null);
create table accounts (id bigint primary key, balance bigint not null);
create table counters (id bigint primary key, balance bigint not null);
create table hand_markers (
  scope bigint not null, at timestamptz not null, outcome smallint not null, version smallint not null,
  id bytea not null, sum bytea, long_id bytea, primary key (scope, id));
create table processed (consumer text not null, id text not null, at timestamptz not null default now(), primary key (consumer, id));
create table flushed (n bigint not null);`

// SQL that deletes all effects and markers, so that each run starts with the same state.
const empty = `
truncate payments, accounts, counters, hand_markers, processed, semel_markers;
insert into accounts select n, 0 from generate_series(0, 9999) n;
insert into counters select n, 0 from generate_series(0, 59) n;`

// countRows returns the number of database rows that the messages change.
func (e Effect) countRows() int64 {
	if e == Counters {
		return 60
	}
	return 10_000
}

// singleStatement returns the statement for one message. The statement's arguments are the account and the amount.
func (e Effect) singleStatement() string {
	switch e {
	case Accounts:
		return "update accounts set balance = balance + $2 where id = $1"
	case Counters:
		return "update counters set balance = balance + $2 where id = $1"
	}
	return "insert into payments (account, amount) values ($1, $2)"
}

// batchStatement returns the statement for a batch. The statement's arguments are the accounts and the amounts.
func (e Effect) batchStatement() string {
	switch e {
	case Accounts:
		return "update accounts" + addAll
	case Counters:
		return "update counters" + addAll
	}
	return "insert into payments (account, amount) select * from unnest($1::bigint[], $2::bigint[])"
}

const addAll = ` a set balance = balance + s.amount from (
  select account, sum(amount)::bigint as amount from unnest($1::bigint[], $2::bigint[]) p (account, amount) group by account
) s where a.id = s.account`

// statementArgs returns the arguments of the statement for a batch.
func statementArgs(messages []*semel.Message) (accounts, amounts []int64, err error) {
	for _, m := range messages {
		p, err := semel.JSON[payment](m)
		if err != nil {
			return nil, nil, err
		}
		accounts, amounts = append(accounts, p.Account), append(amounts, p.Amount)
	}
	return accounts, amounts, nil
}
