/** Spec 3: how releases and connections change state. */
export const states = [
  // Spec 3: releases
  'release:resume:working | Spec 3 | Resuming a paused release moves it to WORKING.',
  'release:resume:paused-only | Spec 3, Field | Resuming a release that is not paused answers 400 and changes nothing.',
  'release:resume:auth-timeout | Spec 3, House | A release in AUTH_TIMEOUT is still paused and can be resumed.',
  'release:state:picked-up | Spec 3, House | A QUEUED release becomes WORKING when a worker takes it.',
  'release:state:outcome | Spec 3, House | A WORKING release ends as SUCCESS, FAILURE, FAILURE_SCAN or INTERNAL_ERROR, by the stage and kind of its failure.',
  'release:state:pauses | Spec 3, Field | A WORKING release whose upstream asks for OAuth authorization becomes AUTH_REQUIRED.',
  'release:state:times-out | Spec 3, House | An AUTH_REQUIRED release that nobody authorizes in time becomes AUTH_TIMEOUT.',
  'release:state:cancelled | Spec 3, House | A newer release or the deletion of the server makes an unfinished release CANCELLED.',
  'release:state:refused | Spec 3, House | Every transition that the release state table does not list is refused.',

  // Spec 3: connections
  'connection:state:connected | Spec 3, Field | Creating a connection to a working server answers `connected` after a real MCP initialization.',
  'connection:state:connected-after-round-trip | Spec 3, House | A server that accepts the TCP connection but never completes the initialization is never `connected`.',
  'connection:state:auth-required | Spec 3, Field | An upstream that answers 401 makes the connection `auth_required`, and its status states that a header is required.',
  'connection:state:auth-required-setup | Spec 3, Field | An `auth_required` status carries `setupUrl` and `authorizationUrl`, where a person can authorize.',
  'connection:state:authorized | Spec 3, Field | A finished authorization makes an `auth_required` connection `connected`.',
  'connection:state:refresh-refused | Spec 3, Field | A refused refresh of the stored credential makes the connection `auth_required` again.',
  'connection:state:input-required | Spec 3, Field | Missing values of the config schema make the connection `input_required` with `http` and `missing`.',
  'connection:state:input-supplied | Spec 3, Field | Supplying all missing values makes an `input_required` connection `connected`.',
  'connection:state:uplink | Spec 3, Field | An uplink connection is `connected` while its tunnel is open and `disconnected` otherwise.',
  'connection:state:error | Spec 3, Field | An unusable target makes the connection `error`, with a `message` that states the fault and the remedy.',
  'connection:state:put-re-evaluates | Spec 3, Field | A PUT that changes what is sent to the server or offered of it, or that names the target or headers of a connection that is not `connected`, asks the server and stores the status of that attempt.',
];
