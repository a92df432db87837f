-- What who watches reads every few seconds. Each is bounded: rows by the index of their state,
-- and by their number; a table's by what the server estimates. Ages are in microseconds.

-- name: sample limit
select set_config('statement_timeout', '50', true);

-- name: sample rows
select s.consumer, count(*),
  coalesce((extract(epoch from clock_timestamp() - min(i.received_at)) * 1000000)::bigint, 0),
  (extract(epoch from clock_timestamp() - min(i.received_at) filter (where i.reason = 'gap')) * 1000000)::bigint,
  count(*) filter (where i.reason = 'suppressed')
from (select scope, received_at, reason from {prefix}inbox where state = $1 order by due_at limit 10001) i
join {prefix}scopes s on s.number = i.scope group by s.consumer;

-- Who keeps all for ever tells how far it is at no time, and nothing is to be removed.
-- name: sample reaping
select consumer, (extract(epoch from clock_timestamp() - progress_at) * 1000000)::bigint,
  case when not off then
    (extract(epoch from clock_timestamp() - walked_to) * 1000000)::bigint - keep_ms * 1000 end
from {prefix}retention where keep_ms > 0;

-- name: sample replays
select consumer, count(*) from {prefix}replays where ended_at is null group by consumer;

-- name: sample tables
select case c.oid when to_regclass('{prefix}markers') then 'markers' else 'inbox' end,
  greatest(c.reltuples, 0)::bigint, coalesce(pg_stat_get_dead_tuples(c.oid), 0)
from pg_class c where c.oid in (to_regclass('{prefix}markers'), to_regclass('{prefix}inbox'));
