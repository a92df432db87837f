-- Up to where markers of a scope may have been removed: a message that is older, and
-- fresh, may have taken effect before.
alter table {prefix}scopes add column low integer;

-- Retention: how long a consumer's records are kept, by its policy, and when it last
-- recorded its progress.
create table {prefix}retention (
  consumer blob primary key,
  keep_ms integer not null,
  bodies_ms integer not null,
  horizon_ms integer not null,
  why text not null,
  off integer not null,
  progress_at integer not null
) without rowid;

-- Ages: the broker's time of the oldest record of a lane that is not settled, or not
-- read; null if all is.
create table {prefix}ages (
  consumer blob not null,
  lane text not null,
  oldest integer,
  at integer not null,
  primary key (consumer, lane)
) without rowid;

-- When the body of a row was removed.
alter table {prefix}inbox add column body_removed_at integer;

-- By these the reaper finds what is due.
create index {prefix}markers_at on {prefix}markers (scope, at);

create index {prefix}inbox_bodies on {prefix}inbox (scope, changed_at)
where state in ('COMPLETED', 'DISCARDED') and body_removed_at is null;
