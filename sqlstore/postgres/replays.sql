-- Times are returned in milliseconds since 1970.

-- name: new replay
insert into {prefix}replays (consumer, generation, kind, effects, started_by, started_why, started_at, state,
  stopped_by, stopped_why, token, lease_until, progress, saved_at)
values ($1, $2, $3, $4, $5, $6, clock_timestamp(), 'running', '', '', $7, clock_timestamp() + $8::bigint * interval '1 millisecond', $9, clock_timestamp())
on conflict do nothing
returning number;

-- name: open replay
select number from {prefix}replays where consumer = $1 and generation = $2 and number <> $3 and ended_at is null;

-- name: lock replay
select (extract(epoch from clock_timestamp()) * 1000)::bigint from {prefix}replays where number = $1 for update;

-- name: set replay
update {prefix}replays set state = $2, token = $3, lease_until = clock_timestamp() + $4::bigint * interval '1 millisecond', progress = $5,
  stopped_by = $6, stopped_why = $7, stopped_at = timestamptz 'epoch' + nullif($8::bigint, 0) * interval '1 millisecond',
  saved_at = timestamptz 'epoch' + $9::bigint * interval '1 millisecond', ended_at = timestamptz 'epoch' + nullif($10::bigint, 0) * interval '1 millisecond'
where number = $1;

-- name: replays
select number, consumer, generation, kind, effects, started_by, started_why, (extract(epoch from started_at) * 1000)::bigint, state,
  stopped_by, stopped_why, coalesce((extract(epoch from stopped_at) * 1000)::bigint, 0), token,
  greatest((extract(epoch from lease_until - clock_timestamp()) * 1000)::bigint, 0),
  progress, (extract(epoch from saved_at) * 1000)::bigint, coalesce((extract(epoch from ended_at) * 1000)::bigint, 0)
from {prefix}replays where ($1::bigint = 0 or number = $1) and ($2::bytea = '' or consumer = $2)
order by number desc limit $3;
