'use strict';
/**
 * The memory of Lean as it was: taken once, put back after every verdict, to the byte. What the
 * judge did for one candidate can so have no effect on the next.
 */
function createSnapshot(host) {
  let image = null;

  function take() {
    const { HEAPU8 } = host.views();
    if (image === null || image.length !== HEAPU8.length) image = new Uint8Array(HEAPU8.length);
    image.set(HEAPU8);
  }

  function restore() {
    const { HEAPU8 } = host.views();
    HEAPU8.set(image);
    HEAPU8.fill(0, image.length); // memory that has been added since is as new
  }

  return { take, restore };
}

module.exports = { createSnapshot };
