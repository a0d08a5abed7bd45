/**
 * A listener on loopback that passes every request on to one address and adds a key to it: the suite's client knows no
 * authorization. Everything else goes through as it is, in both directions and while it comes in, Host and Origin too.
 */
import { Agent, createServer, request as httpRequest } from 'node:http';

/** @returns the forwarder's own address, with the path `/mcp`, and its `close` */
export async function startForwarder(target, key) {
  const { hostname, port, pathname: path } = new URL(target);
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, response) => {
    const headers = [...incoming.rawHeaders, 'Authorization', `Bearer ${key}`];
    const onward = httpRequest({ hostname, port, path, agent, method: incoming.method, headers });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      response.flushHeaders();
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    close: () => {
      server.closeAllConnections();
      agent.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
