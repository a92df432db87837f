-- name: inbox
{prefix}inbox;

-- name: row
insert into {prefix}inbox (revision, scope, id, long_id, conflict, version, sum, surrogate, state, reason,
  topic, partition, "offset", broker_id, key, type, schema, envelope, payload,
  received_at, changed_at, started, finished, repeated, first_error, last_error, due_at)
values (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  cast(unixepoch('subsec') * 1000 as integer), cast(unixepoch('subsec') * 1000 as integer), ?, ?, 0, ?, ?,
  cast(unixepoch('subsec') * 1000 as integer) + ?)
on conflict (scope, id, conflict) do nothing;

-- name: again
update {prefix}inbox set revision = revision + 1, version = ?, sum = ?, surrogate = ?, state = ?, reason = ?,
  topic = ?, partition = ?, "offset" = ?, broker_id = ?, key = ?, type = ?, schema = ?, envelope = ?, payload = ?,
  received_at = cast(unixepoch('subsec') * 1000 as integer), changed_at = cast(unixepoch('subsec') * 1000 as integer),
  started = ?, finished = ?, first_error = ?, last_error = ?, token = null, locked_until = null,
  due_at = cast(unixepoch('subsec') * 1000 as integer) + ?
where scope = ? and id = ? and conflict = ?;

-- name: repeat
update {prefix}inbox set repeated = repeated + 1, revision = revision + 1,
  changed_at = cast(unixepoch('subsec') * 1000 as integer)
where scope = ? and id = ? and conflict = ?;

-- name: row columns
i.number, i.revision, s.consumer, s.source, i.id, i.long_id, i.conflict, i.version, i.sum, i.surrogate,
  i.state, i.reason, i.finished, i.repeated, i.first_error, i.last_error, i.received_at, i.changed_at,
  i.started - i.finished, i.due_at, i.locked_until,
  i.topic, i.partition, i."offset", i.broker_id, i.key, i.type, i.envelope, length(i.payload),
  case when ?1 then i.payload end

-- name: rows
select {columns}
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope
where i.number > ?2{filter} order by i.number limit ?3;

-- name: state
select i.revision, i.state, i.scope, i.id, i.conflict, i.version, i.sum,
  coalesce(i.due_at <= cast(unixepoch('subsec') * 1000 as integer), true) from {prefix}inbox i where i.number = ?;

-- name: row marker
select m.outcome from {prefix}inbox i join {prefix}markers m on m.scope = i.scope and m.id = i.id
where i.number = ?;

-- name: discard row
update {prefix}inbox set state = 'DISCARDED', revision = revision + 1,
  changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = cast(unixepoch('subsec') * 1000 as integer),
  token = null, due_at = null, locked_until = null,
  started = finished
where number = ? and revision = ?;

-- name: act
insert into {prefix}acts (row, verb, who, why, result, at)
values (?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer));

-- name: acts
select row, verb, who, why, result, at from {prefix}acts
where ? in (0, row) order by number limit ?;
