-- Statements for monitoring, which run every few seconds. Each of them reads a limited amount: the
-- counts of rows use the index on states and a maximum number of rows. Ages are in microseconds.

-- name: sample rows
select s.consumer, count(*),
  (cast(unixepoch('subsec') * 1000 as integer) - min(i.received_at)) * 1000,
  (cast(unixepoch('subsec') * 1000 as integer) - min(case when i.reason = 'gap' then i.received_at end)) * 1000,
  count(case when i.reason = 'suppressed' then 1 end)
from (select scope, received_at, reason from {prefix}inbox where state = ? order by due_at limit 10001) i
join {prefix}scopes s on s.number = i.scope group by s.consumer;

-- A consumer that keeps everything forever records no progress, and has nothing to remove.
-- name: sample reaping
select consumer, (cast(unixepoch('subsec') * 1000 as integer) - progress_at) * 1000, null from {prefix}retention where keep_ms > 0;

-- name: sample replays
select consumer, count(*) from {prefix}replays where ended_at is null group by consumer;
