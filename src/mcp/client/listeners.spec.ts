import { describe, expect, it } from '@jest/globals';
import type { ListenFilter } from '../protocol/channel.js';
import { Listeners, type ListenStreamHandlers } from './listeners.js';

const updated = (uri: string) =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });

/** Listeners of an upstream that sends only resource updates, on a stream whose filter can be changed. */
function resourceUpstream() {
  const opened: ListenStreamHandlers[] = [];
  let onChange: () => void = () => undefined;
  const honoured = ({ resourceSubscriptions: uris }: ListenFilter) => (uris ? { resourceSubscriptions: uris } : {});
  const listeners = new Listeners((filter, handlers) => {
    opened.push(handlers);
    const change = async (next: ListenFilter) => {
      onChange();
      return honoured(next);
    };
    return Promise.resolve({ honoured: honoured(filter), change, close: async () => undefined });
  });
  const add = async (filter: ListenFilter) => {
    const received: string[] = [];
    const listener = { onNotification: (text: string) => received.push(text), onEnd: () => undefined };
    const listening = await listeners.add(filter, listener, 1_000);
    return { ...listening, received };
  };
  const notify = (uri: string) => opened.at(-1)?.onNotification(updated(uri), 'notifications/resources/updated');
  return { listeners, opened, add, notify, whenChanged: (work: () => void) => (onChange = work) };
}

describe('listeners that share a stream', () => {
  it('receive resources that a later filter adds, also when the upstream honoured nothing before', async () => {
    const { listeners, opened, add, notify } = resourceUpstream();
    const lists = await add({ toolsListChanged: true });
    expect(lists.honoured).toEqual({});
    const resources = await add({ resourceSubscriptions: ['a:1'] });
    expect([opened.length, resources.honoured]).toEqual([1, { resourceSubscriptions: ['a:1'] }]);
    notify('a:1');
    notify('a:2');
    expect([lists.received, resources.received]).toEqual([[], [updated('a:1')]]);
    await listeners.close();
  });

  it('miss no update during a change of the filter', async () => {
    const { listeners, add, notify, whenChanged } = resourceUpstream();
    const first = await add({ resourceSubscriptions: ['a:1'] });
    whenChanged(() => notify('a:2'));
    const second = await add({ resourceSubscriptions: ['a:2'] });
    expect([first.received, second.received]).toEqual([[], [updated('a:2')]]);
    await listeners.close();
  });

  it('get a new stream when the old one is lost while its filter changes', async () => {
    const { listeners, opened, add, notify, whenChanged } = resourceUpstream();
    await add({ toolsListChanged: true });
    whenChanged(() => opened[0]?.lost(null));
    await add({ resourceSubscriptions: ['a:1'] });
    const later = await add({ resourceSubscriptions: ['a:2'] });
    expect(opened).toHaveLength(2);
    notify('a:2');
    expect(later.received).toEqual([updated('a:2')]);
    await listeners.close();
  });
});
