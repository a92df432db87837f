-- Up to where markers of a scope may have been removed: a message that is older, and
-- fresh, may have taken effect before.
alter table {prefix}scopes add column low timestamptz;

-- Retention: how long a consumer's records are kept, by its policy, and when it last
-- recorded its progress.
create table {prefix}retention (
  consumer bytea primary key,
  keep_ms bigint not null,
  bodies_ms bigint not null,
  horizon_ms bigint not null,
  why text not null,
  off boolean not null,
  progress_at timestamptz not null
);

-- Ages: the broker's time of the oldest record of a lane that is not settled, or not
-- read; null if all is.
create table {prefix}ages (
  consumer bytea not null,
  lane text not null,
  oldest timestamptz,
  at timestamptz not null,
  primary key (consumer, lane)
);

-- When the body of a row was removed.
alter table {prefix}inbox add column body_removed_at timestamptz;

-- The indexes by which the reaper finds what is due, where no rows are yet; elsewhere
-- they are built beside those that write.
do $do$
begin
  if not exists (select 1 from {prefix}markers limit 1) then
    create index {name}markers_at on {prefix}markers (scope, at);
  end if;
  if not exists (select 1 from {prefix}inbox limit 1) then
    create index {name}inbox_bodies on {prefix}inbox (scope, changed_at)
    where state in ('COMPLETED', 'DISCARDED') and body_removed_at is null;
  end if;
end
$do$;
