import type { Listening, ListenFilter, UpstreamListener } from '../../protocol/channel.js';
import { listChanges, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { UplinkBusyError } from '../../protocol/mcp-errors.js';
import type { RpcHead } from '../../protocol/messages.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';

/** Listeners of one tunnel, and resources they follow: what a local server is asked to keep in mind for us. */
const LISTENERS_MAX = 1_000;
const SUBSCRIPTIONS_MAX = 1_000;

interface Subscription {
  listeners: number;
  /** Whether the server tells us; settles once. */
  accepted: Promise<boolean>;
}

/** Asks the server to begin or to end telling about a resource; true when it agreed. */
type Subscribe = (method: 'resources/subscribe' | 'resources/unsubscribe', uri: string) => Promise<boolean>;

/** Who hears what the local server says outside of calls. It is told once of a resource, however many follow it. */
export class UplinkListeners {
  private readonly places = new Set<{ filter: ListenFilter; listener: UpstreamListener }>();
  private readonly subscriptions = new Map<string, Subscription>();

  constructor(private readonly subscribe: Subscribe) {}

  /** @throws UplinkBusyError when there are too many */
  async add(filter: ListenFilter, listener: UpstreamListener, { capabilities }: UpstreamIdentity): Promise<Listening> {
    const uris = [...new Set(canSubscribe(capabilities) ? (filter.resourceSubscriptions ?? []) : [])];
    const added = uris.filter((uri) => !this.subscriptions.has(uri)).length;
    if (this.places.size >= LISTENERS_MAX || this.subscriptions.size + added > SUBSCRIPTIONS_MAX) {
      throw new UplinkBusyError('Too many listen to this uplink already: try again when some of them have left.');
    }
    const place = { filter: honouredLists(filter, capabilities), listener };
    this.places.add(place);
    const accepted = await Promise.all(uris.map((uri) => this.follow(uri)));
    const followed = uris.filter((_, i) => accepted[i]);
    for (const uri of uris.filter((_, i) => !accepted[i])) this.leave(uri);
    if (followed.length > 0) place.filter = { ...place.filter, resourceSubscriptions: followed };
    return {
      honoured: place.filter,
      close: async () => {
        if (this.places.delete(place)) followed.forEach((uri) => this.leave(uri));
      },
    };
  }

  /** True when the notification was one for listeners, whether or not anybody listens. */
  told({ params }: RpcHead, text: string, method: string): boolean {
    const list = listChanges.get(method);
    if (list === undefined && method !== RESOURCE_UPDATED) return false;
    const uri = (params as { uri?: unknown } | undefined)?.uri;
    for (const { filter, listener } of [...this.places]) {
      const hears = list ? filter[list] : typeof uri === 'string' && filter.resourceSubscriptions?.includes(uri);
      if (hears) listener.onNotification(text, method);
    }
    return true;
  }

  /** Nothing more will be said. */
  end(reason: Error): void {
    const places = [...this.places];
    this.places.clear();
    this.subscriptions.clear();
    for (const { listener } of places) listener.onEnd(reason);
  }

  private follow(uri: string): Promise<boolean> {
    const held = this.subscriptions.get(uri);
    if (held) {
      held.listeners += 1;
      return held.accepted;
    }
    const accepted = this.subscribe('resources/subscribe', uri);
    this.subscriptions.set(uri, { listeners: 1, accepted });
    return accepted;
  }

  private leave(uri: string): void {
    const held = this.subscriptions.get(uri);
    if (!held) return;
    held.listeners -= 1;
    if (held.listeners > 0) return;
    this.subscriptions.delete(uri);
    void held.accepted.then((accepted) => accepted && this.subscribe('resources/unsubscribe', uri));
  }
}

function capability(capabilities: Record<string, unknown>, name: string, part: string): boolean {
  return (capabilities[name] as Record<string, unknown> | undefined)?.[part] === true;
}

function canSubscribe(capabilities: Record<string, unknown>): boolean {
  return capability(capabilities, 'resources', 'subscribe');
}

function honouredLists(filter: ListenFilter, capabilities: Record<string, unknown>): ListenFilter {
  const tells = (name: string) => capability(capabilities, name, 'listChanged');
  return {
    ...(filter.toolsListChanged && tells('tools') ? { toolsListChanged: true } : {}),
    ...(filter.promptsListChanged && tells('prompts') ? { promptsListChanged: true } : {}),
    ...(filter.resourcesListChanged && tells('resources') ? { resourcesListChanged: true } : {}),
  };
}
