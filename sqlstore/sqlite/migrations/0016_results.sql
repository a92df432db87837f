-- Results: what handlers made of messages, for those who ask again. A result goes with its
-- marker.
create table {prefix}results (
  scope integer not null,
  id blob not null,
  result blob not null,
  primary key (scope, id)
);
