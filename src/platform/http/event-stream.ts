/** Headers of a stream of server-sent events. `x-accel-buffering` makes nginx pass each event on at once. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};
