-- Streams: the last version of each that took effect, or was skipped.
create table {prefix}streams (
  scope integer not null,
  name blob not null,
  last integer not null,
  version integer not null,
  sum blob,
  changed_at integer not null,
  primary key (scope, name)
) without rowid;

-- Where the message of a row stands in its stream.
alter table {prefix}inbox add column stream blob;

alter table {prefix}inbox add column stream_version integer;

-- Rows that wait for an earlier version, and such as were parked because it did not come.
create index {prefix}inbox_blocked on {prefix}inbox (scope, stream, stream_version)
where state in ('BLOCKED', 'PARKED') and stream is not null;

-- Rows that wait, by the moment from which they may be claimed: for one in
-- progress that is the end of its lease, for a blocked one the end of its patience.
create index {prefix}inbox_waiting on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

drop index {prefix}inbox_claimable;
