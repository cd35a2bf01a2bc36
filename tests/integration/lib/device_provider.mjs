// An OpenID provider with the device flow: the package oidc-provider. Arguments: its module, and settings as JSON.
// POST /faults says what goes wrong from then on, as JSON: what is not named there works.
import { generateKeyPairSync } from 'node:crypto';

const { port, people, ttl, clients } = JSON.parse(process.argv[3]);
const now = Date.now;
let ahead = 0; // seconds, of this clock
Date.now = () => now() + 1000 * ahead;
const { default: Provider } = await import(process.argv[2]);
let faults = {}, held = 0, failed = 0;

const provider = new Provider(`http://localhost:${port}`, {
    clients: clients.map((id) => ({
        client_id: id, token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    })).concat({ client_id: 'web', client_secret: 'secret', redirect_uris: ['http://localhost:1/'] }),
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    claims: { openid: ['sub'], email: ['email'], groups: ['groups'] },
    conformIdTokenClaims: false,
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    rotateRefreshToken: true,
    jwks: { keys: [{ ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [String(process.pid)] },
    ttl: { DeviceCode: 600, IdToken: 3600, RefreshToken: 86400, Grant: 86400, Session: 600, Interaction: 600, AccessToken: 600, ...ttl },
});

function refuse(ctx, error, status = 400) {
    ctx.status = status;
    ctx.body = { error };
}

provider.use(async (ctx, next) => {
    if (ctx.path === '/faults') {
        let text = '';
        for await (const piece of ctx.req) text += piece;
        faults = JSON.parse(text);
        ctx.body = { held, failed };
        return;
    }
    if (ctx.path === '/token' && faults.slowDown > 0) {
        faults.slowDown--;
        return refuse(ctx, 'slow_down');
    }
    if (ctx.path === '/token' && faults.tokenStatus) {
        failed++;
        return refuse(ctx, 'server_error', faults.tokenStatus);
    }
    if (ctx.path === '/token') ahead = faults.clock ?? 0;
    await next();
    ahead = 0;
    if (ctx.path === '/.well-known/openid-configuration') ctx.body = { ...ctx.body, ...faults.discovery };
    if (ctx.path === '/device/auth' && ctx.status === 200) ctx.body = { ...ctx.body, interval: 1, ...faults.code };
    if (ctx.path === '/token' && ctx.status === 200) ctx.body = { ...ctx.body, ...faults.tokens };
    if (ctx.path === '/token' && faults.hold) held++;
    while (ctx.path === '/token' && faults.hold) await new Promise((done) => setTimeout(done, 20));
});

provider.listen(port, '127.0.0.1');
