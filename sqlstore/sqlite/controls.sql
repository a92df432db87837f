-- name: control
select paused, paused_by, paused_why, coalesce(paused_at, 0), per_second, limited_by, limited_why, coalesce(limited_at, 0)
from {prefix}controls where consumer = ?;

-- name: set pause
insert into {prefix}controls (consumer, paused, paused_by, paused_why, paused_at, per_second, limited_by, limited_why)
values (?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer), 0, '', '')
on conflict (consumer) do update
set paused = excluded.paused, paused_by = excluded.paused_by, paused_why = excluded.paused_why, paused_at = excluded.paused_at;

-- name: set limit
insert into {prefix}controls (consumer, paused, paused_by, paused_why, per_second, limited_by, limited_why, limited_at)
values (?, false, '', '', ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer))
on conflict (consumer) do update
set per_second = excluded.per_second, limited_by = excluded.limited_by, limited_why = excluded.limited_why, limited_at = excluded.limited_at;

-- name: consumers
select consumer from {prefix}scopes union select consumer from {prefix}controls order by 1;
