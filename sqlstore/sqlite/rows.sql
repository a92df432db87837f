-- name: inbox
{prefix}inbox;

-- name: row
insert into {prefix}inbox (revision, scope, id, long_id, conflict, version, sum, surrogate, state, reason,
  topic, partition, "offset", broker_id, key, type, schema, envelope, payload,
  received_at, changed_at, started, finished, repeated, first_error, last_error)
values (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  cast(unixepoch('subsec') * 1000 as integer), cast(unixepoch('subsec') * 1000 as integer), ?, ?, 0, ?, ?)
on conflict (scope, id, conflict) do nothing;

-- name: again
update {prefix}inbox set revision = revision + 1, version = ?, sum = ?, surrogate = ?, state = ?, reason = ?,
  topic = ?, partition = ?, "offset" = ?, broker_id = ?, key = ?, type = ?, schema = ?, envelope = ?, payload = ?,
  received_at = cast(unixepoch('subsec') * 1000 as integer), changed_at = cast(unixepoch('subsec') * 1000 as integer),
  started = ?, finished = ?, first_error = ?, last_error = ?
where scope = ? and id = ? and conflict = ?;

-- name: repeat
update {prefix}inbox set repeated = repeated + 1, revision = revision + 1,
  changed_at = cast(unixepoch('subsec') * 1000 as integer)
where scope = ? and id = ? and conflict = ?;

-- name: rows
select i.number, i.revision, s.consumer, s.source, i.id, i.long_id, i.conflict, i.version, i.sum, i.surrogate,
  i.state, i.reason, i.finished, i.repeated, i.first_error, i.last_error, i.received_at, i.changed_at,
  i.topic, i.partition, i."offset", i.broker_id, i.key, i.type, i.envelope, length(i.payload),
  case when ?1 then i.payload end
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope
where i.number > ?2{filter} order by i.number limit ?3;

-- name: state
select i.revision, i.state, i.scope, i.id, i.conflict from {prefix}inbox i where i.number = ?;

-- name: row marker
select m.outcome from {prefix}inbox i join {prefix}markers m on m.scope = i.scope and m.id = i.id
where i.number = ?;

-- name: become
update {prefix}inbox set state = ?, revision = revision + 1,
  changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = cast(unixepoch('subsec') * 1000 as integer),
  started = started + ?, finished = finished + ?
where number = ? and revision = ?;

-- name: failed
update {prefix}inbox set revision = revision + 1, started = started + 1, finished = finished + 1,
  changed_at = cast(unixepoch('subsec') * 1000 as integer),
  first_error = case first_error when '' then ? else first_error end, last_error = ?
where number = ? and revision = ?;

-- name: act
insert into {prefix}acts (row, verb, who, why, result, at)
values (?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer));

-- name: acts
select row, verb, who, why, result, at from {prefix}acts
where ? in (0, row) order by number limit ?;
