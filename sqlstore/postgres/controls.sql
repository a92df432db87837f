-- name: control
select paused, paused_by, paused_why, coalesce((extract(epoch from paused_at) * 1000)::bigint, 0), per_second, limited_by, limited_why, coalesce((extract(epoch from limited_at) * 1000)::bigint, 0)
from {prefix}controls where consumer = $1;

-- name: set pause
insert into {prefix}controls (consumer, paused, paused_by, paused_why, paused_at, per_second, limited_by, limited_why)
values ($1, $2, $3, $4, clock_timestamp(), 0, '', '')
on conflict (consumer) do update
set paused = excluded.paused, paused_by = excluded.paused_by, paused_why = excluded.paused_why, paused_at = excluded.paused_at;

-- name: set limit
insert into {prefix}controls (consumer, paused, paused_by, paused_why, per_second, limited_by, limited_why, limited_at)
values ($1, false, '', '', $2, $3, $4, clock_timestamp())
on conflict (consumer) do update
set per_second = excluded.per_second, limited_by = excluded.limited_by, limited_why = excluded.limited_why, limited_at = excluded.limited_at;

-- name: consumers
select consumer from {prefix}scopes union select consumer from {prefix}controls order by 1;
