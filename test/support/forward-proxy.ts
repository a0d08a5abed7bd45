import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listen } from './upstream/upstream-net.js';

/** An HTTP proxy on loopback as companies run one, which alone reaches the internet. */
export interface ForwardProxy {
  /** With its user name and password, as `EGRESS_PROXY` has it. */
  url: string;
  /** `host:port` of each CONNECT with the right password, in order of arrival. */
  asked: string[];
  /** Answered in place of a tunnel; null: tunnels are opened. */
  refuseWith: number | null;
  close(): Promise<void>;
}

/** Password of the proxy, with a character that a URL must encode. */
export const PROXY_PASSWORD = 'proxy-p@ssword';

/** Starts a proxy that opens tunnels, whatever the host, to the port that was asked for at one address. */
export async function startForwardProxy(address = '127.0.0.1'): Promise<ForwardProxy> {
  const expected = `Basic ${Buffer.from(`slipway:${PROXY_PASSWORD}`).toString('base64')}`;
  const sockets = new Set<Socket>();
  const server = createServer((_req, res) => void res.writeHead(400).end('CONNECT only'));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  });
  server.on('connect', ({ url = '', headers }, near: Socket, head: Buffer) => {
    near.on('error', () => undefined);
    const status = headers['proxy-authorization'] === expected ? proxy.refuseWith : 407;
    if (status !== null) return near.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 6\r\n\r\nnever\n`);
    proxy.asked.push(url);
    const far = connect(Number(url.split(':').at(-1)), address, () => {
      near.write('HTTP/1.1 200 Connection established\r\n\r\n');
      far.write(head);
      near.pipe(far).pipe(near);
    });
    far.on('error', () => near.end('HTTP/1.1 502 Bad gateway\r\n\r\n'));
    near.once('close', () => far.destroy());
  });
  const port = await listen(server);
  const proxy: ForwardProxy = {
    url: `http://slipway:${encodeURIComponent(PROXY_PASSWORD)}@127.0.0.1:${port}`,
    asked: [],
    refuseWith: null,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
  return proxy;
}
