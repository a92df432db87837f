-- Streams: the last version of each that took effect, or was skipped.
create table {prefix}streams (
  scope bigint not null,
  name bytea not null,
  last bigint not null,
  version smallint not null,
  sum bytea,
  changed_at timestamptz not null,
  primary key (scope, name)
);

-- Where the message of a row stands in its stream.
alter table {prefix}inbox add column stream bytea;

alter table {prefix}inbox add column stream_version bigint;

-- Rows that wait for an earlier version, and such as were parked because it did not come.
create index {name}inbox_blocked on {prefix}inbox (scope, stream, stream_version)
where state in ('BLOCKED', 'PARKED') and stream is not null;

-- Rows that wait, by the moment from which they may be claimed: for one in
-- progress that is the end of its lease, for a blocked one the end of its patience.
create index {name}inbox_waiting on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

drop index {prefix}inbox_claimable;
