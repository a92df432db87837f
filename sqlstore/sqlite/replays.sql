-- Times are milliseconds since 1970.

-- name: new replay
insert into {prefix}replays (consumer, generation, kind, effects, started_by, started_why, started_at, state,
  stopped_by, stopped_why, token, lease_until, progress, saved_at)
values (?1, ?2, ?3, ?4, ?5, ?6, cast(unixepoch('subsec') * 1000 as integer), 'running', '', '', ?7, cast(unixepoch('subsec') * 1000 as integer) + ?8, ?9,
  cast(unixepoch('subsec') * 1000 as integer))
on conflict do nothing
returning number;

-- name: open replay
select number from {prefix}replays where consumer = ?1 and generation = ?2 and number <> ?3 and ended_at is null;

-- name: lock replay
select cast(unixepoch('subsec') * 1000 as integer) from {prefix}replays where number = ?1;

-- name: set replay
update {prefix}replays set state = ?2, token = ?3, lease_until = cast(unixepoch('subsec') * 1000 as integer) + ?4, progress = ?5,
  stopped_by = ?6, stopped_why = ?7, stopped_at = nullif(?8, 0), saved_at = ?9, ended_at = nullif(?10, 0)
where number = ?1;

-- name: replays
select number, consumer, generation, kind, effects, started_by, started_why, started_at, state,
  stopped_by, stopped_why, coalesce(stopped_at, 0), token,
  max(lease_until - cast(unixepoch('subsec') * 1000 as integer), 0),
  progress, saved_at, coalesce(ended_at, 0)
from {prefix}replays where (?1 = 0 or number = ?1) and (?2 = x'' or consumer = ?2)
order by number desc limit ?3;
